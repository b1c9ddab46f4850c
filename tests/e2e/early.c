/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Takes blocks as early and as late as a program can: before all constructors (61001 bytes), in the
 * first constructor (61002), in main (61003), in an exit handler (61004) and in a destructor
 * (61005). Blocks of the early ones are resized and given back in main.
 */
#include <stdlib.h>

static void *before_all;
static void *first;

static void take_before_all(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	before_all = malloc(61001);
}

__attribute__((section(".preinit_array"), used)) static void (*preinit)(int, char **,
									char **) = take_before_all;

__attribute__((constructor(101))) static void take_first(void)
{
	first = malloc(61002);
}

static void take_at_exit(void)
{
	free(malloc(61004));
}

__attribute__((destructor(101))) static void take_last(void)
{
	free(malloc(61005));
}

int main(void)
{
	if (!before_all || !first || atexit(take_at_exit))
		return 1;
	free(malloc(61003));
	before_all = realloc(before_all, 200001);
	if (!before_all)
		return 2;
	free(before_all);
	free(first);
	return 0;
}
