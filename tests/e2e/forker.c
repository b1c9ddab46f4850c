/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * forker CHILDREN: makes CHILDREN children by fork() and as many by the raw system call, which runs
 * no fork handlers. Child k takes k blocks of 100000 + k bytes, frees blocks that its parent took,
 * and ends with or without exit handlers. The parent takes and frees blocks of 7 bytes meanwhile.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define INHERITED 10

static void *inherited[INHERITED];

static void be_child(int number)
{
	for (int i = 0; i < number; i++)
		if (!malloc(100000 + (size_t)number))
			_exit(98);
	for (int i = 0; i < INHERITED; i++)
		free(inherited[i]);
	if (number % 2)
		exit(0);
	_exit(0);
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 0;
	int status;

	for (int i = 0; i < INHERITED; i++)
		inherited[i] = malloc(4000);
	for (int i = 1; i <= 2 * children; i++) {
		/* flags, stack, parent_tid, child_tid, tls */
		long pid = i % 2 ? fork() : syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);

		if (pid < 0)
			return 97;
		if (pid == 0)
			be_child((i + 1) / 2);
		for (int k = 0; k < 10; k++)
			free(malloc(7));
	}
	for (int i = 0; i < 2 * children; i++)
		if (wait(&status) < 0 || status)
			return 96;
	for (int i = 0; i < INHERITED; i++)
		free(inherited[i]);
	return 0;
}
