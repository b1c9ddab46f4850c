// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The program that whole-run benchmarks track: THREADS threads that each make PAIRS pairs of malloc
 * and free, sizes 64 to 319, as in the figures of the documentation.
 *
 *   pairs THREADS PAIRS
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long pairs;

static void *run(void *argument)
{
	uint32_t state = (uint32_t)(uintptr_t)argument * 2654435761u + 1;

	for (long i = 0; i < pairs; i++) {
		char *block;

		state = state * 1664525u + 1013904223u;
		block = malloc(64 + (state >> 24));
		if (!block)
			abort();
		*(volatile char *)block = 1;
		free(block);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	pthread_t ids[64];

	pairs = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	if (threads < 1 || threads > 64 || pairs < 1) {
		fprintf(stderr, "usage: pairs THREADS PAIRS\n");
		return 2;
	}
	for (long i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, run, (void *)(uintptr_t)i))
			return 1;
	run(NULL);
	for (long i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
