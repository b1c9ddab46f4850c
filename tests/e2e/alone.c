/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * alone WHAT: looks for traces of a tool in its own process.
 *   children     no child and no SIGCHLD that it did not make; SIGCHLD ends what it started
 *   threads      one thread, and a new user namespace can be made
 *   signals      the signals that it waits for are its own, and all of them
 *   descriptors  the first free descriptor is 3
 *   main_exits   a single thread that calls pthread_exit ends the process
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t children_ended;

static void on_child(int number)
{
	(void)number;
	children_ended++;
}

static int check_children(void)
{
	struct sigaction action = { .sa_handler = on_child };
	pid_t pid;
	int status;

	sigaction(SIGCHLD, &action, NULL);
	if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD)
		return 1;
	for (int i = 0; i < 20000; i++)
		free(malloc(100));
	if (children_ended)
		return 2;
	pid = fork();
	if (pid == 0)
		_exit(7);
	while (waitpid(-1, &status, 0) < 0)
		if (errno != EINTR)
			return 3;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7 || children_ended != 1)
		return 4;
	return wait(&status) == -1 && errno == ECHILD ? 0 : 5;
}

static int count_tasks(void)
{
	DIR *folder = opendir("/proc/self/task");
	int count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count - 2;
}

static int check_threads(void)
{
	sigset_t none, all;

	if (count_tasks() != 1)
		return 1;
	if (sigprocmask(SIG_SETMASK, NULL, &none))
		return 2;
	sigemptyset(&all);
	for (int number = 1; number < 32; number++)
		if (sigismember(&none, number))
			return 3;
	/* Fails with EINVAL in a process of several threads; EPERM and ENOSPC are the machine's. */
	if (unshare(CLONE_NEWUSER) && errno == EINVAL)
		return 4;
	return 0;
}

static int check_signals(void)
{
	struct timespec soon = { .tv_nsec = 200000000 };
	struct sigaction action;
	sigset_t all;

	for (int number = 1; number < 32; number++)
		if (sigaction(number, NULL, &action) ||
		    (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN))
			return 1;
	sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, NULL))
		return 2;
	for (int i = 0; i < 20000; i++)
		free(malloc(100));
	for (int i = 0; i < 100; i++)
		if (raise(SIGUSR1) || raise(SIGUSR2) ||
		    sigtimedwait(&all, NULL, &soon) != SIGUSR1 ||
		    sigtimedwait(&all, NULL, &soon) != SIGUSR2)
			return 3;
	return sigtimedwait(&all, NULL, &soon) == -1 ? 0 : 4;
}

static int check_descriptors(void)
{
	int fd = open("/dev/null", O_RDONLY);

	if (fd != 3)
		return 1;
	for (int other = 4; other < 1024; other++)
		if (fcntl(other, F_GETFD) != -1)
			return 2;
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "children"))
		return check_children();
	if (!strcmp(what, "threads"))
		return check_threads();
	if (!strcmp(what, "signals"))
		return check_signals();
	if (!strcmp(what, "descriptors"))
		return check_descriptors();
	if (!strcmp(what, "main_exits"))
		pthread_exit(NULL);
	return 95;
}
