/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void bench_require(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench: %s failed\n", what);
	exit(1);
}

void bench_init(struct bench *b, const char *name)
{
	const char *rounds = getenv("BENCH_ROUNDS");
	unsigned long n = rounds ? strtoul(rounds, NULL, 10) : 7;

	memset(b, 0, sizeof(*b));
	b->name = name;
	b->rounds = n < 1 ? 1 : n > BENCH_ROUNDS_MAX ? BENCH_ROUNDS_MAX : (unsigned int)n;
}

void bench_add(struct bench *b, const char *name, bench_fn *fn, void *state)
{
	const char *filter = getenv("BENCH_FILTER");

	if (filter && !strstr(name, filter))
		return;
	bench_require(b->n < BENCH_CASES, "bench_add: room for the case");
	b->cases[b->n++] = (struct bench_case){ .name = name, .fn = fn, .state = state };
}

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void run_once(struct bench_case *c, unsigned int round)
{
	uint64_t cpu = cpu_now_ns(), start = bench_now_ns(), took;
	double units;

	c->result = (struct bench_result){ 0 };
	c->fn(c->state, &c->result);
	took = bench_now_ns() - start;
	if (c->result.time_ns)
		took = c->result.time_ns;
	units = (double)(c->result.units ? c->result.units : 1);
	c->ns[round] = (double)took / units;
	c->cpu_ns[round] = (double)(cpu_now_ns() - cpu) / units;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(const struct bench *b, const struct bench_case *c)
{
	double median = c->ns[b->rounds / 2], low = c->ns[0], high = c->ns[b->rounds - 1];
	double cpu = c->cpu_ns[b->rounds / 2], first = b->cases[0].cpu_ns[b->rounds / 2];
	double bytes = (double)c->result.bytes / (double)(c->result.units ? c->result.units : 1);

	fprintf(stderr, "%-8s %-40s %9.2f %9.2f %9.2f %9.2f %8.3f %9.2f\n", b->name, c->name, cpu,
		median, low, high, cpu / first, bytes);
	printf("{\"bench\":\"%s\",\"case\":\"%s\",\"cpu_ns\":%.3f,\"ns\":%.3f,\"ns_low\":%.3f,"
	       "\"ns_high\":%.3f,\"ratio\":%.4f,\"bytes\":%.3f,\"units\":%llu,\"rounds\":%u}\n",
	       b->name, c->name, cpu, median, low, high, cpu / first, bytes,
	       (unsigned long long)c->result.units, b->rounds);
}

int bench_run(struct bench *b)
{
	for (size_t i = 0; i < b->n; i++)
		run_once(&b->cases[i], 0); /* to warm up */
	for (unsigned int round = 0; round < b->rounds; round++) {
		for (size_t i = 0; i < b->n; i++)
			run_once(&b->cases[i], round);
	}
	fprintf(stderr, "%-8s %-40s %9s %9s %9s %9s %8s %9s\n", "bench", "case", "cpu ns", "ns",
		"low", "high", "ratio", "bytes");
	for (size_t i = 0; i < b->n; i++) {
		qsort(b->cases[i].ns, b->rounds, sizeof(double), by_value);
		qsort(b->cases[i].cpu_ns, b->rounds, sizeof(double), by_value);
	}
	for (size_t i = 0; i < b->n; i++)
		report(b, &b->cases[i]);
	return 0;
}
