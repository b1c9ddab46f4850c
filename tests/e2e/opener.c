/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Parts of programs that open libraries, by the value of PART:
 *   1  a library that takes and gives back 50 blocks of 71001 bytes
 *   2  a library that opens others for its callers, by its own RUNPATH
 *   3  a program: opener HOW FILE
 *   4  a library that stands before dlopen, and passes its calls on
 *   5  a library whose constructor opens OPENER_FILE with RTLD_DEEPBIND
 * The program takes 50 blocks of 71002 bytes itself, and says what came of the call, the error
 * included. Its status is 0 also where that failed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void take_blocks(size_t size);
void *open_for(const char *file, int flags);

#if PART == 1 || PART == 3
void take_blocks(size_t size)
{
	for (int i = 0; i < 50; i++) {
		char *volatile block = malloc(size);

		block[0] = 1;
		free(block);
	}
}
#endif

#if PART == 1
void used(void);
void used(void)
{
	take_blocks(71001);
}
#endif

#if PART == 2
/* Not a jump, which would make the program the caller. */
void *open_for(const char *file, int flags)
{
	void *volatile handle = dlopen(file, flags);

	return handle;
}
#endif

#if PART == 3
static void *open_so(const char *how, const char *file)
{
	if (strcmp(how, "deep") == 0)
		return dlopen(file, RTLD_NOW | RTLD_DEEPBIND);
	if (strcmp(how, "plain") == 0)
		return dlopen(file, RTLD_LAZY | RTLD_LOCAL);
	if (strcmp(how, "again") == 0) {
		void *first = dlopen(file, RTLD_NOW);

		return dlopen(file, RTLD_NOW | RTLD_DEEPBIND | RTLD_NOLOAD) == first ? first : NULL;
	}
	if (strcmp(how, "self") == 0)
		return dlopen(NULL, RTLD_NOW | RTLD_DEEPBIND) ? dlopen(file, RTLD_NOW) : NULL;
	if (strcmp(how, "base") == 0)
		return dlmopen(LM_ID_BASE, file, RTLD_NOW);
	if (strcmp(how, "basedeep") == 0)
		return dlmopen(LM_ID_BASE, file, RTLD_NOW | RTLD_DEEPBIND);
	if (strcmp(how, "new") == 0)
		return dlmopen(LM_ID_NEWLM, file, RTLD_NOW);
	if (strcmp(how, "for") == 0)
		return open_for(file, RTLD_NOW);
	if (strcmp(how, "deepfor") == 0)
		return open_for(file, RTLD_NOW | RTLD_DEEPBIND);
	exit(96);
}

/* In a child, when its parent has ended (orphan) or is another program (left). */
static void go_on_in_child(const char *how)
{
	int ends[2];
	char byte;

	if (pipe(ends) || fcntl(ends[1], F_SETFD, FD_CLOEXEC))
		exit(97);
	if (fork() != 0) {
		if (strcmp(how, "left") == 0)
			execlp("cat", "cat", (char *)NULL);
		exit(0);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 0)
		exit(97);
}

int main(int argc, char **argv)
{
	void (*use)(void);
	void *handle;

	if (argc < 3)
		return 95;
	if (argc > 3)
		go_on_in_child(argv[3]);
	take_blocks(71002);
	errno = 4711;
	handle = open_so(argv[1], argv[2]);
	printf("%s %d\n", handle ? "open" : dlerror(), handle ? 0 : errno);
	if (!handle)
		return 0;
	*(void **)&use = dlsym(handle, "used");
	if (!use)
		return 98;
	use();
	printf("%s\n", dlerror() ? "an error" : "no error");
	return 0;
}
#endif

#if PART == 4
void *dlopen(const char *file, int flags)
{
	void *(*next)(const char *, int);
	void *volatile handle;

	*(void **)&next = dlsym(RTLD_NEXT, "dlopen");
	handle = next(file, flags);
	return handle;
}
#endif

#if PART == 5
__attribute__((constructor(101))) static void open_it(void)
{
	void (*use)(void);
	void *handle = dlopen(getenv("OPENER_FILE"), RTLD_NOW | RTLD_DEEPBIND);

	if (!handle)
		abort();
	*(void **)&use = dlsym(handle, "used");
	use();
}
#endif
