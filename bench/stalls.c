// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * How a program is held up when the sidecar is slower than it: makes pairs of malloc and free for
 * some seconds and prints how long those took that took longest, as one JSON line. Pairs in which
 * the kernel took the processor away are told apart, as "preempted": those are no matter of the
 * sidecar's. To be run bare and tracked, with a slow encoder:
 *
 *   memtrack-preload --codec=zstd --level=9 --workers=1 -- bench/stalls SECONDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define STALL_NS 100000 /* a pair that takes longer counts as a stall */

static const uint64_t limits_us[] = { 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000 };

#define LIMITS (sizeof(limits_us) / sizeof(limits_us[0]))

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* How often this thread had to leave the processor to others. */
static long preemptions(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

static struct {
	uint32_t *took_us;
	size_t count, space;
	uint64_t preempted, preempted_longest_ns, stalled_ns;
	long preemptions;
} stalls;

static int note(uint64_t took_ns)
{
	long now = preemptions();
	int preempted = now != stalls.preemptions;

	stalls.preemptions = now;
	if (preempted) {
		stalls.preempted++;
		if (took_ns > stalls.preempted_longest_ns)
			stalls.preempted_longest_ns = took_ns;
		return 0;
	}
	stalls.stalled_ns += took_ns;
	if (stalls.count == stalls.space)
		return -1;
	stalls.took_us[stalls.count++] = (uint32_t)(took_ns / 1000);
	return 0;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The stall below which `share` of the time lies that was spent in stalls. */
static uint32_t at_share_of_time(double share)
{
	double sum = 0;

	for (size_t i = 0; i < stalls.count; i++) {
		sum += stalls.took_us[i];
		if (sum * 1000 >= share * (double)stalls.stalled_ns)
			return stalls.took_us[i];
	}
	return stalls.count ? stalls.took_us[stalls.count - 1] : 0;
}

static void print(uint64_t pairs, uint64_t ns)
{
	size_t at = 0;

	qsort(stalls.took_us, stalls.count, sizeof(*stalls.took_us), by_size);
	printf("{\"bench\":\"stalls\",\"pairs\":%llu,\"stalls\":%zu,\"stalled_share\":%.3f,"
	       "\"p50_us\":%u,\"p99_us\":%u,\"longest_us\":%u,\"half_of_time_us\":%u",
	       (unsigned long long)pairs, stalls.count, (double)stalls.stalled_ns / (double)ns,
	       stalls.count ? stalls.took_us[stalls.count / 2] : 0,
	       stalls.count ? stalls.took_us[stalls.count * 99 / 100] : 0,
	       stalls.count ? stalls.took_us[stalls.count - 1] : 0, at_share_of_time(0.5));
	for (size_t i = 0; i < LIMITS; i++) {
		size_t first = at;

		while (at < stalls.count && stalls.took_us[at] <= limits_us[i])
			at++;
		printf(",\"to_%llu_us\":%zu", (unsigned long long)limits_us[i], at - first);
	}
	printf(",\"longer\":%zu,\"preempted\":%llu,\"preempted_longest_us\":%llu}\n",
	       stalls.count - at, (unsigned long long)stalls.preempted,
	       (unsigned long long)stalls.preempted_longest_ns / 1000);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
	uint64_t pairs = 0, start, last, end;
	uint32_t state = 1;

	stalls.space = (size_t)(seconds * (1e9 / STALL_NS)) + 1;
	stalls.took_us = calloc(stalls.space, sizeof(*stalls.took_us));
	if (!stalls.took_us)
		return 1;
	stalls.preemptions = preemptions();
	start = last = now_ns();
	end = start + (uint64_t)(seconds * 1e9);
	while (last < end) {
		char *block;
		uint64_t now;

		state = state * 1664525u + 1013904223u;
		block = malloc(64 + (state >> 24));
		if (!block)
			return 1;
		*(volatile char *)block = 1;
		free(block);
		pairs++;
		now = now_ns();
		if (now - last > STALL_NS && note(now - last))
			return 1;
		last = now;
	}
	print(pairs, last - start);
	free(stalls.took_us);
	return 0;
}
