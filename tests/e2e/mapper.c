/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mapper: mappings of its own (37 pages, grown to 41 by mremap, unmapped), one that fails, and
 * blocks so large that the allocator maps them itself: those are blocks and no mappings.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096UL

static void *nothing(void *unused)
{
	return unused;
}

int main(void)
{
	pthread_t thread;
	char *block, *map;

	map = mmap(NULL, 37 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return 1;
	map = mremap(map, 37 * PAGE, 41 * PAGE, MREMAP_MAYMOVE);
	if (map == MAP_FAILED || munmap(map, 41 * PAGE))
		return 2;
	if (mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		return 3;
	block = malloc(64UL << 20);
	if (!block)
		return 4;
	memset(block, 1, PAGE);
	block = realloc(block, 128UL << 20); /* glibc uses mremap here */
	if (!block || block[1] != 1)
		return 5;
	free(block);
	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		return 6;
	return 0;
}
