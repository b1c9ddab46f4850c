/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TREE_DEPTH_MAX 256
#define GUARD_POLL_NS  20000000
/* How long the signal that continued us may take to continue the command as well. */
#define CONTINUE_POLLS	 10
#define CONTINUE_POLL_NS 1000000

/* State and parent from /proc/PID/stat, without allocation: also used in a forked child. */
static bool read_stat(pid_t pid, char *ret_state, pid_t *ret_parent)
{
	char path[32], text[512];
	const char *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	/* The name in parentheses may hold anything, parentheses too. */
	end = strrchr(text, ')');
	if (!end || end[1] != ' ' || !end[2])
		return false;
	*ret_state = end[2];
	*ret_parent = (pid_t)atoi(end + 3);
	return true;
}

static bool is_stopped(pid_t pid)
{
	pid_t parent;
	char state;

	return read_stat(pid, &state, &parent) && state == 'T';
}

bool mt_job_is_in_tree(pid_t pid, pid_t root)
{
	char state;
	int depth;

	for (depth = 0; depth < TREE_DEPTH_MAX; depth++) {
		if (pid == root)
			return true;
		if (pid <= 1 || !read_stat(pid, &state, &pid))
			return false;
	}
	return false;
}

bool mt_job_lives(pid_t pid)
{
	pid_t parent;
	char state;

	return read_stat(pid, &state, &parent) && state != 'Z' && state != 'X';
}

pid_t mt_job_parent(pid_t pid)
{
	pid_t parent;
	char state;

	return read_stat(pid, &state, &parent) ? parent : 0;
}

static void nap(long ns)
{
	struct timespec ts = { .tv_nsec = ns };

	nanosleep(&ts, NULL);
}

/*
 * A stopped sidecar cannot notice that somebody continued the command alone. This process does, in
 * a session of its own so that the terminal's signals pass it by.
 */
static _Noreturn void guard_main(pid_t sidecar, pid_t child)
{
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == sidecar && is_stopped(child))
		nap(GUARD_POLL_NS);
	if (getppid() == sidecar)
		kill(sidecar, SIGCONT);
	_exit(0);
}

void mt_job_stop_with(pid_t child)
{
	const struct timespec zero = { 0 };
	pid_t self = getpid(), guard;
	sigset_t cont;
	int i;

	guard = fork();
	if (guard == 0)
		guard_main(self, child);
	kill(self, SIGSTOP);
	/* Here we go on. */
	if (guard > 0) {
		kill(guard, SIGKILL);
		while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
			;
	}
	/* The signal that woke us is dealt with here, and is not one to pass on. */
	sigemptyset(&cont);
	sigaddset(&cont, SIGCONT);
	while (sigtimedwait(&cont, NULL, &zero) > 0)
		;
	for (i = 0; i < CONTINUE_POLLS && is_stopped(child); i++)
		nap(CONTINUE_POLL_NS);
	if (is_stopped(child))
		kill(child, SIGCONT);
}
