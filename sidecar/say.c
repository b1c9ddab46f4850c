/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool say_quiet;
static char last_error[512];

void mt_say_init(bool quiet)
{
	say_quiet = quiet;
}

const char *mt_say_last_error(void)
{
	return last_error;
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
	/* Nobody is left to be told that standard error is gone. */
	while (write(STDERR_FILENO, line, len) < 0 && errno == EINTR)
		;
	errno = saved;
}

void mt_say_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
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
