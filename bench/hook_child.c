/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench/hook_child.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/harness.h"
#include "bench/hook_steps.h"
#include "preload/stamp.h"

#define PAIRS 20000
/* Untimed, before each pass: others had the caches meanwhile. */
#define WARM_PAIRS 8000

static struct bench_hooks hooks;
static void *blocks[BENCH_HOOK_LIVE];
static uint32_t seed = 1;

uint32_t bench_hook_units(char pass)
{
	switch (pass) {
	case BENCH_PASS_MMAP:
		return 1000;
	case BENCH_PASS_THREAD:
		return 50;
	case BENCH_PASS_FORK:
		return 10;
	default:
		return PAIRS;
	}
}

/* Of this thread alone: the machine may be busy with others. */
static uint64_t used_ns(void)
{
	struct timespec used;

	bench_require(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0, "no clock");
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one); /* unpinned it is only noisier */
}

static void tight(uint32_t count)
{
	const struct bench_hooks own = hooks;
	uint32_t i;

	for (i = 0; i < count; i++) {
		void *volatile block = own.malloc(64 + (i & 255));

		own.free(block);
	}
}

static void random_blocks(uint32_t count)
{
	const struct bench_hooks own = hooks;
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t at;

		seed = seed * 1664525 + 1013904223;
		at = seed >> 20;
		own.free(blocks[at]);
		blocks[at] = own.malloc(64 + (seed >> 8 & 255));
	}
}

static void calloc_pairs(uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		void *volatile block = calloc(1, 64 + (i & 255));

		free(block);
	}
}

static void reallocs(uint32_t count)
{
	void *volatile block = NULL;
	uint32_t i;

	for (i = 0; i < count; i++)
		block = realloc(block, 64 + (i & 255));
	free(block);
}

static void mappings(uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		bench_require(map != MAP_FAILED && munmap(map, 4096) == 0, "mmap");
	}
}

static void read_clocks(uint32_t count)
{
	static uint64_t stamps[2];
	uint32_t i;

	for (i = 0; i < count; i++) {
		mt_store_relaxed(&stamps[0], mt_counter());
		mt_store_relaxed(&stamps[1], mt_counter());
	}
}

/* The operators as a C++ program finds them: the preloaded ones first. */
static void *(*operator_new)(size_t size);
static void (*operator_delete)(void *block);

static bool find_operators(void)
{
	void *new_one, *delete_one;

	if (operator_new != NULL)
		return true;
	if (dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL) == NULL)
		return false;
	new_one = dlsym(RTLD_DEFAULT, "_Znwm");
	delete_one = dlsym(RTLD_DEFAULT, "_ZdlPv");
	if (new_one == NULL || delete_one == NULL)
		return false;
	memcpy(&operator_new, &new_one, sizeof(new_one));
	memcpy(&operator_delete, &delete_one, sizeof(delete_one));
	return true;
}

static void operators(uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		void *volatile block = operator_new(64 + (i & 255));

		operator_delete(block);
	}
}

static uint64_t timed(void (*pass)(uint32_t count), uint32_t count)
{
	uint64_t start;

	pass(count < WARM_PAIRS ? count : WARM_PAIRS);
	start = used_ns();
	pass(count);
	return used_ns() - start;
}

static pthread_barrier_t both;

static void *second_thread(void *ret_ns)
{
	pin(1);
	tight(WARM_PAIRS);
	pthread_barrier_wait(&both);
	*(uint64_t *)ret_ns = timed(tight, PAIRS);
	pthread_barrier_wait(&both);
	return NULL;
}

static uint64_t two_threads(void)
{
	uint64_t ours, others;
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	bench_require(pthread_create(&thread, NULL, second_thread, &others) == 0, "a thread");
	pthread_barrier_wait(&both);
	ours = timed(tight, PAIRS);
	pthread_barrier_wait(&both);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&both);
	return (ours + others) / 2;
}

static void *one_pair(void *nothing)
{
	void *volatile block = malloc(64);

	free(block);
	return nothing;
}

static uint64_t threads(uint32_t count)
{
	uint64_t start = bench_now_ns();
	uint32_t i;

	for (i = 0; i < count; i++) {
		pthread_t thread;

		bench_require(pthread_create(&thread, NULL, one_pair, NULL) == 0, "a thread");
		pthread_join(thread, NULL);
	}
	return bench_now_ns() - start;
}

static uint64_t forks(uint32_t count)
{
	uint64_t start = bench_now_ns();
	uint32_t i;

	for (i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			one_pair(NULL);
			_exit(0);
		}
		bench_require(pid > 0 && waitpid(pid, NULL, 0) == pid, "fork");
	}
	return bench_now_ns() - start;
}

static uint64_t do_pass(char pass)
{
	switch (pass) {
	case BENCH_PASS_TIGHT:
		return timed(tight, PAIRS);
	case BENCH_PASS_RANDOM:
		return timed(random_blocks, PAIRS);
	case BENCH_PASS_TWO:
		return two_threads();
	case BENCH_PASS_CALLOC:
		return timed(calloc_pairs, PAIRS);
	case BENCH_PASS_REALLOC:
		return timed(reallocs, PAIRS);
	case BENCH_PASS_NEW:
		return find_operators() ? timed(operators, PAIRS) : BENCH_HOOK_ABSENT;
	case BENCH_PASS_MMAP:
		return timed(mappings, bench_hook_units(pass));
	case BENCH_PASS_THREAD:
		return threads(bench_hook_units(pass));
	case BENCH_PASS_FORK:
		return forks(bench_hook_units(pass));
	case BENCH_PASS_CLOCK:
		return timed(read_clocks, PAIRS);
	default:
		return BENCH_HOOK_ABSENT;
	}
}

int bench_hook_child(const char *steps, int step)
{
	char pass;

	hooks = (struct bench_hooks){ malloc, free };
	if (step >= 0) {
		void *module = dlopen(steps, RTLD_NOW);
		const struct bench_hooks *table;

		bench_require(module != NULL, "loading the steps' module");
		table = dlsym(module, BENCH_STEPS_SYMBOL);
		bench_require(table != NULL && step < BENCH_STEPS, "finding the steps");
		hooks = table[step];
	}
	pin(0);
	while (read(STDIN_FILENO, &pass, 1) == 1) {
		uint64_t ns = do_pass(pass);

		bench_require(write(STDOUT_FILENO, &ns, sizeof(ns)) == sizeof(ns), "pipe");
	}
	return 0;
}
