/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The process that bench/hook measures. It reads orders, one byte each, from standard input, and
 * answers each on standard output with a uint64_t: the nanoseconds that the pass took, or
 * BENCH_HOOK_ABSENT. It ends when its input does.
 */
#ifndef MT_BENCH_HOOK_CHILD_H
#define MT_BENCH_HOOK_CHILD_H

#include <stdint.h>

#define BENCH_HOOK_ABSENT UINT64_MAX
#define BENCH_HOOK_LIVE	  4096

/* Passes, and their orders. */
#define BENCH_PASS_TIGHT   't' /* malloc and free of one block of 64 to 319 bytes */
#define BENCH_PASS_RANDOM  'r' /* of one of BENCH_HOOK_LIVE blocks, picked at random */
#define BENCH_PASS_TWO	   '2' /* tight, on two threads at once: the mean of both */
#define BENCH_PASS_CALLOC  'c' /* calloc and free */
#define BENCH_PASS_REALLOC 'a' /* realloc up and down between 64 and 319 bytes: one call */
#define BENCH_PASS_NEW	   'n' /* operator new and delete of libstdc++ */
#define BENCH_PASS_MMAP	   'm' /* mmap and munmap of a page */
#define BENCH_PASS_THREAD  's' /* pthread_create, a pair in the thread, pthread_join */
#define BENCH_PASS_FORK	   'f' /* fork, a pair in the child, _exit, waitpid */
#define BENCH_PASS_CLOCK   'k' /* the counter read twice, nothing else */

/* How often the pass does it. */
uint32_t bench_hook_units(char pass);

/* `step`: an enum bench_step of the module `steps`; negative: malloc as the process has it. */
int bench_hook_child(const char *steps, int step);

#endif
