/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * starter HOW COUNT SIZE PROGRAM [ARGUMENT...]: takes COUNT blocks of SIZE bytes, then starts
 * PROGRAM: exec         in its own place thread       in its own place, from a second thread null
 * in its own place, with no environment at all bare         in its own place, with an environment
 * of two entries spawn        as a child, by posix_spawn with an environment of two entries fails
 * tries a program that is not there, takes the blocks once more, then as exec
 */
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;
static char path[] = "PATH=/usr/bin:/bin";
static char locale[] = "LC_ALL=C";
static char *const bare[] = { path, locale, NULL };

static void take(const char *count, const char *size)
{
	for (long i = atol(count); i > 0; i--)
		if (!malloc(strtoul(size, NULL, 0)))
			_exit(98);
}

static void *start_there(void *unused)
{
	execv(arguments[0], arguments);
	_exit(96);
	return unused;
}

static int spawn(void)
{
	pid_t pid;
	int status;

	if (posix_spawn(&pid, arguments[0], NULL, NULL, arguments, bare))
		return 94;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 93;
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 5)
		return 95;
	arguments = argv + 4;
	take(argv[2], argv[3]);
	if (!strcmp(argv[1], "spawn"))
		return spawn();
	if (!strcmp(argv[1], "fails")) {
		execl("/no/such/program", "program", (char *)NULL);
		take(argv[2], argv[3]);
	}
	if (!strcmp(argv[1], "thread")) {
		if (pthread_create(&thread, NULL, start_there, NULL))
			return 97;
		pthread_join(thread, NULL);
	}
	if (!strcmp(argv[1], "null"))
		execve(arguments[0], arguments, NULL);
	if (!strcmp(argv[1], "bare"))
		execve(arguments[0], arguments, bare);
	execv(arguments[0], arguments);
	return 96;
}
