// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * How a program is held up when the sidecar is slower than it: makes pairs of malloc and free for
 * some seconds and prints how long those took that took longest, as one JSON line. To be run bare
 * and tracked, with a slow encoder:
 *
 *   memtrack-preload --codec=zstd --level=9 --workers=1 -- bench/stalls SECONDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
	uint64_t counts[LIMITS + 1] = { 0 }, longest = 0, stalled = 0, pairs = 0, stalls = 0;
	uint64_t start = now_ns(), last = start, end = start + (uint64_t)(seconds * 1e9);
	uint32_t state = 1;

	while (last < end) {
		char *block;
		uint64_t now;
		size_t i = 0;

		state = state * 1664525u + 1013904223u;
		block = malloc(64 + (state >> 24));
		if (!block)
			return 1;
		*(volatile char *)block = 1;
		free(block);
		pairs++;
		now = now_ns();
		if (now - last > STALL_NS) {
			while (i < LIMITS && now - last > limits_us[i] * 1000)
				i++;
			counts[i]++;
			stalls++;
			stalled += now - last;
			if (now - last > longest)
				longest = now - last;
		}
		last = now;
	}
	printf("{\"bench\":\"stalls\",\"pairs\":%llu,\"stalls\":%llu,\"stalled_share\":%.3f,"
	       "\"longest_us\":%llu",
	       (unsigned long long)pairs, (unsigned long long)stalls,
	       (double)stalled / (double)(last - start), (unsigned long long)longest / 1000);
	for (size_t i = 0; i < LIMITS; i++)
		printf(",\"to_%llu_us\":%llu", (unsigned long long)limits_us[i],
		       (unsigned long long)counts[i]);
	printf(",\"longer\":%llu}\n", (unsigned long long)counts[LIMITS]);
	return 0;
}
