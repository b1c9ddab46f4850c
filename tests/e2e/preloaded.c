/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two libraries, of which the second is preloaded beside ours, and a program. The first has an
 * indirect function, whose resolver takes a block (62001 bytes). The second has its address in a
 * table, so the loader calls the resolver before it has relocated what stands before it: us. Both
 * take one in their first constructor (62002 and 62003). The program gives them all back.
 */
#include <stdlib.h>

#if PART == 1

void *preloaded_blocks[3];

static int answer(void)
{
	return 42;
}

static int (*resolve_answer(void))(void)
{
	preloaded_blocks[0] = malloc(62001);
	return answer;
}

int preloaded_answer(void) __attribute__((ifunc("resolve_answer")));

__attribute__((constructor(101))) static void take(void)
{
	preloaded_blocks[1] = malloc(62002);
}

#elif PART == 2

extern void *preloaded_blocks[3];
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
	for (int i = 0; i < 3; i++) {
		char *block = blocks[i];

		if (!block)
			return 2 + i;
		block[0] = 'a';
		block = realloc(block, (size_t)(62011 + i));
		if (!block || block[0] != 'a')
			return 12 + i;
		free(block);
	}
	return 0;
}

#endif
