/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/start.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "common/raw_syscall.h"
#include "preload/follow.h"
#include "preload/session.h"
#include "preload/settings.h"
#include "preload/stamp.h"

#define SIDECAR "memtrack-sidecar"
/* Its start may take this long also where --max-wait is shorter: the machine may be busy. */
#define LEAST_MS  2000u
#define NOT_THERE "!" SIDECAR " was not found; set MEMTRACK_SIDECAR to its path\n"

struct launch {
	char *const *environment; /* without us */
	const char *chosen;	  /* MEMTRACK_SIDECAR, or NULL */
	char beside[PATH_MAX];	  /* where it is when we stand in a build or an install tree */
	char pid[12];
	int ready_fd; /* the end that it writes to */
	uint64_t wait_ns;
};

void mt_start_complain(const char *reason)
{
	static const char head[] = "memtrack: ", tail[] = "; the program runs untracked\n";
	struct iovec parts[3] = {
		{ (void *)(uintptr_t)head, sizeof(head) - 1 },
		{ (void *)(uintptr_t)reason, strlen(reason) },
		{ (void *)(uintptr_t)tail, sizeof(tail) - 1 },
	};

	(void)mt_syscall3(SYS_writev, 2, (long)parts, 3); /* there is nobody else to tell */
}

static void write_number(char text[12], uint32_t number)
{
	char digits[12];
	int count = 0, i;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	for (i = 0; i < count; i++)
		text[i] = digits[count - 1 - i];
	text[count] = '\0';
}

/* Replaces the last `parts` parts of a path; leaves "" when that does not fit. */
static void replace_tail(char path[PATH_MAX], int parts, const char *tail)
{
	char *end = NULL;

	for (; parts > 0; parts--) {
		if (end != NULL)
			*end = '\0';
		end = strrchr(path, '/');
		if (end == NULL)
			break;
	}
	if (end == NULL || (size_t)(end - path) + strlen(tail) >= PATH_MAX)
		path[0] = '\0';
	else
		memcpy(end, tail, strlen(tail) + 1);
}

/* In a build tree preload/.libs/LIBRARY and memtrack-sidecar, else lib/memtrack/LIBRARY. */
static void find_beside(char path[PATH_MAX])
{
	memcpy(path, mt_follow.path, strlen(mt_follow.path) + 1);
	if (strstr(path, "/preload/.libs/") != NULL)
		replace_tail(path, 3, "/" SIDECAR);
	else
		replace_tail(path, 3, "/libexec/memtrack/" SIDECAR);
}

static void execute(const struct launch *launch, const char *path, char *ready)
{
	char *arguments[] = { (char *)(uintptr_t)path,
			      (char *)(uintptr_t) "--attach",
			      (char *)(uintptr_t)launch->pid,
			      (char *)(uintptr_t) "--ready-fd",
			      ready,
			      NULL };

	/* It only comes back when it failed. */
	(void)mt_syscall3(SYS_execve, (long)path, (long)arguments, (long)launch->environment);
}

/* In the process that becomes the sidecar: a copy of ours with nothing but this thread. */
static _Noreturn void become_sidecar(const struct launch *launch)
{
	uint64_t no_signals = 0;
	char ready[12];
	long fd;

	(void)mt_syscall0(SYS_setsid); /* cannot fail: we lead no group */
	(void)mt_syscall4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&no_signals, 0,
			  sizeof(no_signals)); /* cannot fail */
	fd = mt_syscall4(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0);
	if (fd >= 0) {
		(void)mt_syscall3(SYS_dup3, fd, 0, 0); /* to itself it fails, and is there */
		(void)mt_syscall3(SYS_dup3, fd, 1, 0); /* likewise */
	}
	fd = mt_syscall3(SYS_fcntl, launch->ready_fd, F_DUPFD, 3); /* survives exec */
	write_number(ready, (uint32_t)fd);
	if (launch->chosen != NULL) {
		execute(launch, launch->chosen, ready);
	} else {
		if (launch->beside[0] != '\0')
			execute(launch, launch->beside, ready);
#ifdef MT_SIDECAR_PATH
		execute(launch, MT_SIDECAR_PATH, ready);
#endif
	}
	(void)mt_syscall3(SYS_write, fd, (long)NOT_THERE,
			  sizeof(NOT_THERE) - 1); /* its last word */
	for (;;)
		(void)mt_syscall1(SYS_exit_group, 127); /* does not come back */
}

/* A process without an exit signal: no SIGCHLD, and wait() does not see it. */
static long clone_quietly(void)
{
	return mt_syscall5(SYS_clone, 0, 0, 0, 0, 0);
}

static int launch_sidecar(const struct launch *launch)
{
	long between = clone_quietly();
	long result;
	int status;

	if (between == 0) {
		if (clone_quietly() == 0)
			become_sidecar(launch);
		for (;;)
			(void)mt_syscall1(SYS_exit_group, 0); /* does not come back */
	}
	if (between < 0)
		return (int)between;
	do {
		result = mt_syscall4(SYS_wait4, between, (long)&status, __WALL, 0);
	} while (result == -EINTR);
	return 0;
}

/* The sidecar is an orphan from its first moment on, and is not to become our child after all. */
static int launch_past_us(const struct launch *launch)
{
	int reaps = 0;
	int error;

	(void)mt_syscall2(SYS_prctl, PR_GET_CHILD_SUBREAPER, (long)&reaps); /* else we are none */
	if (reaps != 0)
		(void)mt_syscall2(SYS_prctl, PR_SET_CHILD_SUBREAPER, 0); /* cannot fail */
	error = launch_sidecar(launch);
	if (reaps != 0)
		(void)mt_syscall2(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1); /* cannot fail */
	return error;
}

/*
 * Reads one line, without its end. Returns 0 or a negative errno. Who writes may live on and say
 * nothing, and others than the sidecar may hold the pipe open (a script that started it).
 */
static int read_line(int fd, uint64_t wait_ns, char *line, size_t line_bytes)
{
	uint64_t since_ns = mt_stamp_clock_ns();
	size_t len = 0;

	while (len + 1 < line_bytes) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		struct timespec slice = { .tv_nsec = 100000000 };
		long result = mt_syscall5(SYS_ppoll, (long)&poller, 1, (long)&slice, 0, 0);

		if (result > 0) {
			result = mt_syscall3(SYS_read, fd, (long)(line + len),
					     (long)(line_bytes - 1 - len));
			if (result == 0)
				return -EPIPE;
			if (result > 0)
				len += (size_t)result;
		}
		if (result < 0 && result != -EINTR)
			return (int)result;
		line[len] = '\0';
		if (strchr(line, '\n') != NULL) {
			*strchr(line, '\n') = '\0';
			return 0;
		}
		if (mt_stamp_clock_ns() - since_ns > wait_ns)
			return -ETIMEDOUT;
	}
	return -EMSGSIZE;
}

static int run(struct launch *launch, char *value, size_t value_bytes)
{
	int ends[2];
	int error = (int)mt_syscall2(SYS_pipe2, (long)ends, O_CLOEXEC);

	if (error != 0)
		return error;
	ends[0] = mt_fd_raise(ends[0]);
	ends[1] = mt_fd_raise(ends[1]);
	launch->ready_fd = ends[1];
	error = ends[0] < 0 || ends[1] < 0 ? -EMFILE : launch_past_us(launch);
	if (ends[1] >= 0)
		(void)mt_syscall1(SYS_close, ends[1]); /* the sidecar has its own */
	if (error == 0)
		error = read_line(ends[0], launch->wait_ns, value, value_bytes);
	if (ends[0] >= 0)
		(void)mt_syscall1(SYS_close, ends[0]); /* only read from */
	return error;
}

/* Without LD_PRELOAD: the sidecar must not be tracked. */
static void clean_environment(char *const *from, char **to)
{
	size_t count = 0;

	for (; from != NULL && *from != NULL && count + 1 < MT_FOLLOW_POINTERS_MAX; from++) {
		if (strncmp(*from, "LD_PRELOAD=", 11) != 0)
			to[count++] = *from;
	}
	to[count] = NULL;
}

int mt_start_sidecar(char *const *environment, char *value, size_t value_bytes)
{
	struct launch launch = { .chosen = mt_settings_get(environment, "MEMTRACK_SIDECAR") };
	uint64_t wait_ms = mt_settings_ms(environment, "MEMTRACK_MAX_WAIT", MT_HELLO_WAIT_MS);
	size_t count = 0;
	char **cleaned;
	int error;

	/* Orphans become its children, and the kernel ends them with it. */
	if (mt_syscall0(SYS_getpid) == 1) {
		mt_start_complain("as process 1 it has to be started with memtrack-preload");
		return -ECANCELED;
	}
	launch.wait_ns = (wait_ms < LEAST_MS ? LEAST_MS : wait_ms) * 1000000u;
	while (environment[count] != NULL && count + 1 < MT_FOLLOW_POINTERS_MAX)
		count++;
	cleaned = alloca((count + 1) * sizeof(*cleaned));
	clean_environment(environment, cleaned);
	launch.environment = cleaned;
	find_beside(launch.beside);
	write_number(launch.pid, (uint32_t)mt_syscall0(SYS_getpid));
	error = run(&launch, value, value_bytes);
	if (error == 0 && value[0] == '!') {
		mt_start_complain(value + 1);
		return -ECANCELED;
	}
	if (error == -ETIMEDOUT)
		mt_start_complain("the sidecar did not say that it is ready");
	else if (error != 0)
		mt_start_complain("the sidecar could not be started");
	return error;
}
