/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * spawner SERIAL PARALLEL: SERIAL threads one after the other, then PARALLEL at once, each takes
 * one block of 60001 bytes. Prints how many KiB of shared memory the process has touched at the
 * end.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t barrier;

static void *take_one(void *unused)
{
	char *block = malloc(60001);

	if (!block)
		abort();
	free(block);
	return unused;
}

static void *take_and_wait(void *unused)
{
	take_one(unused);
	pthread_barrier_wait(&barrier);
	return unused;
}

static long shared_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "RssShmem:", 9))
			kib = strtol(line + 9, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

int main(int argc, char **argv)
{
	int serial = argc > 1 ? atoi(argv[1]) : 0;
	int parallel = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t *threads = calloc((size_t)parallel + 1, sizeof(*threads));
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	if (!threads || pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + 16384))
		return 97;
	for (int i = 0; i < serial; i++) {
		if (pthread_create(&threads[0], &attributes, take_one, NULL))
			return 97;
		pthread_join(threads[0], NULL);
	}
	pthread_barrier_init(&barrier, NULL, (unsigned int)parallel + 1);
	for (int i = 0; i < parallel; i++)
		if (pthread_create(&threads[i], &attributes, take_and_wait, NULL))
			return 96;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < parallel; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	printf("%ld\n", shared_kib());
	return 0;
}
