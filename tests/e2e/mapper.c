/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mapper: mappings of its own (37 pages, grown to 41 by mremap, unmapped), calls that fail, one by
 * the raw system call, threads with large stacks, and blocks so large that the allocator maps them
 * itself: those are blocks and no mappings.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096UL

#define THREADS 20

/* An allocator that keeps blocks for each thread gives them up when it ends, outside of any call.
 */
static void *take_and_end(void *unused)
{
	void *blocks[16];

	for (size_t i = 0; i < 16; i++)
		blocks[i] = malloc(2048 * (i + 1));
	for (size_t i = 0; i < 16; i++)
		free(blocks[i]);
	return unused;
}

/* Where nothing is to be seen of it. */
static int calls_that_fail(char *map, size_t len)
{
	return mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
	       !munmap(map + 1, PAGE) || !munmap(map, 0) ||
	       mremap(map, len, 1UL << 60, 0) != MAP_FAILED;
}

int main(void)
{
	pthread_attr_t large;
	pthread_t thread;
	char *block, *map;

	map = mmap(NULL, 37 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return 1;
	if (calls_that_fail(map, 37 * PAGE))
		return 3;
	map = mremap(map, 37 * PAGE, 41 * PAGE, MREMAP_MAYMOVE);
	if (map == MAP_FAILED)
		return 2;
	/* What might have moved is taken back: unmapped and mapped again. */
	if (mremap(map, 41 * PAGE, 1UL << 60, MREMAP_MAYMOVE) != MAP_FAILED ||
	    munmap(map, 41 * PAGE))
		return 2;
	block = malloc(64UL << 20);
	if (!block)
		return 4;
	memset(block, 1, PAGE);
	block = realloc(block, 128UL << 20); /* glibc uses mremap here */
	if (!block || block[1] != 1)
		return 5;
	free(block);
	pthread_attr_init(&large);
	if (pthread_attr_setstacksize(&large, 2UL << 20))
		return 6;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, &large, take_and_end, NULL) ||
		    pthread_join(thread, NULL))
			return 6;
	/* Past everybody: neither the one nor the other is seen. */
	map = (char *)syscall(SYS_mmap, NULL, 53 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	if (map == MAP_FAILED || syscall(SYS_munmap, map, 53 * PAGE))
		return 7;
	if (sbrk(0) == (void *)-1)
		return 8;
	return 0;
}
