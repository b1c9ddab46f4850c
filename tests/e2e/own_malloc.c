/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * own_malloc COUNT SIZE: a program with an allocator of its own, which cuts blocks from mappings.
 * OWN(name) says what its functions are called: malloc itself, or with a prefix, as an allocator
 * has that a Rust program links. Takes COUNT blocks of SIZE bytes, gives each back, and checks
 * them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef OWN
#define OWN(name) name
#endif
#ifndef OWN_VISIBILITY
#define OWN_VISIBILITY "default"
#endif
#define OWN_CALL __attribute__((visibility(OWN_VISIBILITY), used, noinline))
#define HEADER	 16
#define PIECE	 (1UL << 20)

OWN_CALL void *OWN(malloc)(size_t size);
OWN_CALL void OWN(free)(void *block);
OWN_CALL void *OWN(calloc)(size_t count, size_t each);
OWN_CALL void *OWN(realloc)(void *block, size_t size);

static char *next, *end;
static void *last; /* the block that was given back last is given out again */

OWN_CALL void *OWN(malloc)(size_t size)
{
	size_t whole = (size + HEADER + 15) & ~(size_t)15;
	char *block = last;

	if (block && *(size_t *)(block - HEADER) >= whole) {
		last = NULL;
		return block;
	}
	if (!next || (size_t)(end - next) < whole) {
		size_t bytes = whole > PIECE ? whole : PIECE;

		next = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		if (next == MAP_FAILED)
			return next = NULL;
		end = next + bytes;
	}
	block = next + HEADER;
	*(size_t *)next = whole;
	next += whole;
	return block;
}

OWN_CALL void OWN(free)(void *block)
{
	if (block)
		last = block;
}

OWN_CALL void *OWN(calloc)(size_t count, size_t each)
{
	void *block = OWN(malloc)(count * each);

	return block ? memset(block, 0, count * each) : NULL;
}

OWN_CALL void *OWN(realloc)(void *block, size_t size)
{
	void *moved = OWN(malloc)(size);
	size_t old = block ? *(size_t *)((char *)block - HEADER) - HEADER : 0;

	return moved && block ? memcpy(moved, block, old < size ? old : size) : moved;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[1]) : 0;
	size_t size = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;

	for (long i = 0; i < count; i++) {
		unsigned char *block = OWN(malloc)(size);

		if (!block)
			return 1;
		memset(block, (int)(i & 255), size);
		if (block[size - 1] != (i & 255))
			return 2;
		OWN(free)(block);
	}
	return count ? 0 : 95;
}
