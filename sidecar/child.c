/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/options.h"

#define HIGH_FD	   512
#define CLOSE_SLOW 65536

int mt_move_fd_high(int fd)
{
	int base, moved = -1;

	/* A small limit leaves less room: half of what there is, then less. */
	for (base = HIGH_FD; moved < 0 && base > 2; base /= 2)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, base);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

/* What travels back through the gate when the command cannot be run. */
struct child_error {
	int32_t error;
};

static _Noreturn void child_main(int gate, char **argv, char **env,
				 const struct mt_identity *identity,
				 const struct mt_inherited *inherited)
{
	struct child_error report;
	ssize_t n;
	char go;

	/* What can be done before the gate opens costs no time. Signals stay blocked until the
	 * exec. */
	report.error = -mt_identity_take(identity);
	mt_inherited_restore(inherited);
	do {
		n = read(gate, &go, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(MT_EXIT_FAILURE);
	if (!report.error) {
		mt_inherited_unblock(inherited);
		execvpe(argv[0], argv, env);
		report.error = errno;
	}
	/* The gate is a socket: MSG_NOSIGNAL, since SIGPIPE is as the user had it by now. */
	send(gate, &report, sizeof(report), MSG_NOSIGNAL);
	_exit(report.error == ENOENT ? MT_EXIT_NOT_FOUND : MT_EXIT_CANNOT_RUN);
}

/* The headers may be older than the kernel; the number is the same on all machines. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

void mt_close_all_but(int keep)
{
	int fd;

	if ((keep <= 3 || syscall(SYS_close_range, 3u, (unsigned)keep - 1, 0u) == 0) &&
	    syscall(SYS_close_range, keep < 3 ? 3u : (unsigned)keep + 1, ~0u, 0u) == 0)
		return;
	/* Linux before 5.9. */
	for (fd = 3; fd < CLOSE_SLOW; fd++) {
		if (fd != keep)
			close(fd);
	}
}

/* Does this process hold a lock of fcntl's by its descriptor `fd`? */
static bool holds_lock(int fd)
{
	char path[64], text[1024];
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return false;
	n = read(info, text, sizeof(text));
	close(info);
	return n > 0 && memmem(text, (size_t)n, " POSIX ", 7);
}

/*
 * What was inherited is the command's, and is closed. But locks of fcntl are the process's, and no
 * child inherits them: the caller took them for as long as the command runs, and we hold them.
 */
static void close_inherited(int keep)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	bool locked = false;
	int fd;

	while (dir && !locked && (entry = readdir(dir)))
		locked = atoi(entry->d_name) > 2 && holds_lock(atoi(entry->d_name));
	if (!locked) {
		if (dir)
			closedir(dir);
		mt_close_all_but(keep);
		return;
	}
	rewinddir(dir);
	while ((entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (fd > 2 && fd != keep && fd != dirfd(dir) && !holds_lock(fd))
			close(fd);
	}
	closedir(dir);
}

static void give_up_standard_io(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	dup3(fd, STDIN_FILENO, O_CLOEXEC);
	dup3(fd, STDOUT_FILENO, O_CLOEXEC);
	close(fd);
}

int mt_child_fork(char **argv, char **env, const struct mt_identity *identity,
		  const struct mt_inherited *inherited, struct mt_child *ret_child)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pair[0] = mt_move_fd_high(pair[0]);
	pair[1] = mt_move_fd_high(pair[1]);
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(pair[0]);
		close(pair[1]);
		return err;
	}
	if (pid == 0) {
		close(pair[0]);
		child_main(pair[1], argv, env, identity, inherited);
	}
	close(pair[1]);
	close_inherited(pair[0]);
	give_up_standard_io();
	ret_child->pid = pid;
	ret_child->gate = pair[0];
	ret_child->ended = false;
	ret_child->status = 0;
	return 0;
}

/* The gate could not be opened. Without it the child ends by itself; a signal may have done that.
 */
static int closed_gate(struct mt_child *child)
{
	siginfo_t info = { .si_code = 0 };

	close(child->gate);
	child->gate = -1;
	while (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	return info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED ? -EPIPE : -EIO;
}

int mt_child_run(struct mt_child *child)
{
	struct child_error report;
	ssize_t n;

	if (send(child->gate, "g", 1, MSG_NOSIGNAL) != 1)
		return closed_gate(child);
	do {
		n = recv(child->gate, &report, sizeof(report), MSG_WAITALL);
	} while (n < 0 && errno == EINTR);
	close(child->gate);
	child->gate = -1;
	if (n != (ssize_t)sizeof(report))
		return 0;
	return report.error ? -report.error : -EINVAL;
}

void mt_child_cancel(struct mt_child *child)
{
	if (child->gate >= 0)
		close(child->gate);
	child->gate = -1;
	if (!child->ended && child->pid > 0) {
		kill(child->pid, SIGKILL);
		while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
			;
		child->ended = true;
	}
}
