/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * starter HOW COUNT SIZE PROGRAM [ARGUMENT...]: takes COUNT blocks of SIZE bytes, then starts
 * PROGRAM in its own place: exec, or the name of a function of that family, with an environment of
 * two entries where it takes one; null: with no environment at all; bare: with two entries; raw: by
 * the system call, with two entries; kept: likewise, with its own; thread: from a second thread;
 * fails: after one that is not there, and the blocks once more. Or as a child, with two entries:
 * posix_spawn, posix_spawnp, vfork.
 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* glibc has it since 2.34, and we have it for any. */
extern int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
	__attribute__((weak));

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

static int end_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 93;
	return WEXITSTATUS(status);
}

/* The status of the child; -1 when HOW makes none. */
static int start_child(const char *how)
{
	const char *file = arguments[0];
	pid_t pid;

	if (!strcmp(how, "posix_spawn"))
		return posix_spawn(&pid, file, NULL, NULL, arguments, bare) ? 94 : end_of(pid);
	if (!strcmp(how, "posix_spawnp"))
		return posix_spawnp(&pid, file, NULL, NULL, arguments, bare) ? 94 : end_of(pid);
	if (strcmp(how, "vfork"))
		return -1;
	pid = vfork();
	if (pid == 0) {
		execve(file, arguments, bare);
		_exit(96);
	}
	return end_of(pid);
}

/* Comes back when HOW is not for it. */
static void start_here(const char *how)
{
	const char *file = arguments[0];

	if (!strcmp(how, "null"))
		execve(file, arguments, NULL);
	if (!strcmp(how, "bare"))
		execve(file, arguments, bare);
	if (!strcmp(how, "raw"))
		syscall(SYS_execve, file, arguments, bare);
	if (!strcmp(how, "kept"))
		syscall(SYS_execve, file, arguments, environ);
	if (!strcmp(how, "execvpe"))
		execvpe(file, arguments, bare);
	if (!strcmp(how, "execle"))
		execle(file, file, arguments[1], arguments[2], (char *)NULL, bare);
	if (!strcmp(how, "fexecve"))
		fexecve(open(file, O_RDONLY | O_CLOEXEC), arguments, bare);
	if (!strcmp(how, "execveat") && execveat)
		execveat(AT_FDCWD, file, arguments, bare, 0);
	if (!strcmp(how, "execl"))
		execl(file, file, arguments[1], arguments[2], (char *)NULL);
	if (!strcmp(how, "execlp"))
		execlp(file, file, arguments[1], arguments[2], (char *)NULL);
	if (!strcmp(how, "execvp"))
		execvp(file, arguments);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status;

	if (argc < 5)
		return 95;
	arguments = argv + 4;
	take(argv[2], argv[3]);
	status = start_child(argv[1]);
	if (status >= 0)
		return status;
	if (!strcmp(argv[1], "fails")) {
		execl("/no/such/program", "program", (char *)NULL);
		take(argv[2], argv[3]);
	}
	if (!strcmp(argv[1], "thread")) {
		if (pthread_create(&thread, NULL, start_there, NULL))
			return 97;
		pthread_join(thread, NULL);
	}
	start_here(argv[1]);
	execv(arguments[0], arguments);
	return 96;
}
