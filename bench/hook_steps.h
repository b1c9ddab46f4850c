/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What recording is made of, one step more in each interposer. A module, so that its code reaches
 * its data as the preloaded library's does; bench/hook calls it by pointer.
 */
#ifndef MT_BENCH_HOOK_STEPS_H
#define MT_BENCH_HOOK_STEPS_H

#include <stddef.h>

enum bench_step {
	BENCH_STEP_EMPTY,   /* passes the call on */
	BENCH_STEP_STORE,   /* stores a record of 24 bytes, turns over when the chunk is full */
	BENCH_STEP_PUBLISH, /* a release store behind the record */
	BENCH_STEP_GUARD,   /* thread-local guard against re-entrance, set and cleared */
	BENCH_STEP_FLAG,    /* tests whether recording is on */
	BENCH_STEP_FORK,    /* tests whether the thread's slot is this process's */
	BENCH_STEP_CLOCK,   /* RDTSC on both sides: the whole hook */
	BENCH_STEP_STRICT,  /* RDTSCP after malloc */
	BENCH_STEPS
};

struct bench_hooks {
	void *(*malloc)(size_t size);
	void (*free)(void *block);
};

/* The module's table, by enum bench_step. */
#define BENCH_STEPS_SYMBOL "bench_step_hooks"
extern const struct bench_hooks bench_step_hooks[BENCH_STEPS];

#endif
