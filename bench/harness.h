/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Measures cases beside each other: every round runs each case once, so that
 * a slow phase of the machine meets them all. Wall time and, beside it, the
 * processor time of this process are given. A table goes to stderr at the
 * end, one JSON object a line and case to stdout.
 *
 *   bench_init(&b, "encode");
 *   bench_add(&b, "ours", run_ours, &state);
 *   return bench_run(&b);
 *
 * Environment: BENCH_ROUNDS (7), BENCH_FILTER (a part of the case's name).
 */
#ifndef MT_BENCH_HARNESS_H
#define MT_BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_CASES = 64, BENCH_ROUNDS_MAX = 101 };

/* What one run of a case did. */
struct bench_result {
	uint64_t units;	  /* times are given for each */
	uint64_t bytes;	  /* of output, 0 if that says nothing */
	uint64_t time_ns; /* measured by the case itself; 0: the harness's own measurement */
};

typedef void bench_fn(void *state, struct bench_result *ret);

struct bench_case {
	const char *name;
	bench_fn *fn;
	void *state;
	double ns[BENCH_ROUNDS_MAX];
	double cpu_ns[BENCH_ROUNDS_MAX]; /* of all threads; tells when the machine was busy */
	struct bench_result result;	 /* of the last round */
};

struct bench {
	const char *name;
	unsigned int rounds;
	size_t n;
	struct bench_case cases[BENCH_CASES];
};

void bench_init(struct bench *b, const char *name);
/* Ratios are of processor time, against the first case. */
void bench_add(struct bench *b, const char *name, bench_fn *fn, void *state);
/* One round to warm up, then the rounds that count. Returns an exit status. */
int bench_run(struct bench *b);

uint64_t bench_now_ns(void);
/* Ends the program with the reason when `ok` is 0: a benchmark has nobody to report to. */
void bench_require(int ok, const char *what);

#endif
