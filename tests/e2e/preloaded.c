/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two libraries, of which the second is preloaded beside ours, and a program. The first has an
 * indirect function, whose resolver takes blocks (62001, 62004 and 62005 bytes) when it is first
 * called. The second has its address in a table, so the loader calls the resolver before it has
 * relocated what stands before it: us. Both take one in their first constructor (62002 and 62003).
 * The program gives them all back: three when they have grown by ten bytes, one as it is, one when
 * it is small. When it has ended, and our library too, the first takes its last block (62021).
 */
#include <stdlib.h>

#define BLOCKS 5

#if PART == 1

void *preloaded_blocks[BLOCKS];

static int answer(void)
{
	return 42;
}

static int (*resolve_answer(void))(void)
{
	if (preloaded_blocks[0])
		return answer;
	preloaded_blocks[0] = malloc(62001);
	preloaded_blocks[3] = malloc(62004);
	preloaded_blocks[4] = malloc(62005);
	return answer;
}

int preloaded_answer(void) __attribute__((ifunc("resolve_answer")));

__attribute__((constructor(101))) static void take(void)
{
	preloaded_blocks[1] = malloc(62002);
}

__attribute__((destructor(101))) static void take_last(void)
{
	free(malloc(62021));
}

#elif PART == 2

extern void *preloaded_blocks[BLOCKS];
int preloaded_answer(void);
extern int (*preloaded_table[1])(void);

int (*preloaded_table[1])(void) = { preloaded_answer };

__attribute__((constructor(101))) static void take(void)
{
	preloaded_blocks[2] = malloc(62003);
}

#else

#include <dlfcn.h>

int main(void)
{
	void **blocks = dlsym(RTLD_DEFAULT, "preloaded_blocks");
	int (**table)(void) = dlsym(RTLD_DEFAULT, "preloaded_table");

	if (!blocks || !table || table[0]() != 42)
		return 1;
	for (int i = 0; i < BLOCKS; i++) {
		char *block = blocks[i];

		if (!block)
			return 2 + i;
		block[0] = 'a';
		block[62000] = 'z';
		if (i < 3)
			block = realloc(block, (size_t)(62011 + i));
		else if (i == 4)
			block = realloc(block, 24);
		if (!block || block[0] != 'a' || (i < 3 && block[62000] != 'z'))
			return 12 + i;
		free(block);
	}
	return 0;
}

#endif
