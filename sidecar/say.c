/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/child.h"

/* How long a line waits for room in a pipe that was let go. */
#define PIPE_WAIT_MS 1000

static bool say_quiet, errors_held;
static char last_error[512];
static int pipe_place =
	-1; /* names the pipe and does not hold it open; -1: standard error is ours */

void mt_say_init(bool quiet)
{
	say_quiet = quiet;
}

const char *mt_say_last_error(void)
{
	return last_error;
}

void mt_say_hold_errors(bool hold)
{
	errors_held = hold;
}

void mt_say_let_go(void)
{
	struct stat st = { .st_mode = 0 };
	int null;

	if (fstat(STDERR_FILENO, &st) == 0 && (S_ISREG(st.st_mode) || isatty(STDERR_FILENO)))
		return;
	/* Without it there is nobody to talk to, as with a socket. */
	if (S_ISFIFO(st.st_mode))
		pipe_place = mt_move_fd_high(open("/proc/self/fd/2", O_PATH | O_CLOEXEC));
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0) {
		close(STDERR_FILENO);
		return;
	}
	dup3(null, STDERR_FILENO, O_CLOEXEC);
	close(null);
}

/* Standard error, or the pipe that it was; -1 when nobody reads that one any more. */
static int open_listener(void)
{
	char path[40];

	if (pipe_place < 0)
		return STDERR_FILENO;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pipe_place);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Nobody is left to be told that standard error is gone. */
static void write_line(const char *line, size_t len)
{
	int fd = open_listener();
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	if (fd < 0)
		return;
	while (write(fd, line, len) < 0 &&
	       (errno == EINTR || (errno == EAGAIN && poll(&room, 1, PIPE_WAIT_MS) > 0)))
		;
	if (fd != STDERR_FILENO)
		close(fd);
}

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args)
{
	static const char prefix[] = "memtrack: ";
	const size_t prefix_len = sizeof(prefix) - 1;
	char line[1024];
	int saved = errno;
	size_t len, i;
	int n;

	memcpy(line, prefix, prefix_len);
	n = vsnprintf(line + prefix_len, sizeof(line) - prefix_len - 1, format, args);
	if (n < 0)
		return;
	len = prefix_len + (size_t)n;
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	/* Names of files may hold what a terminal would obey. */
	for (i = prefix_len; i < len; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	}
	line[len++] = '\n';
	write_line(line, len);
	errno = saved;
}

void mt_say_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	if (errors_held)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

void mt_say_note(const char *format, ...)
{
	va_list args;

	if (say_quiet)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}
