/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/command.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int mt_command_misused(const char *name, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; try '%s --help'\n", name);
	return MT_EXIT_USAGE;
}

const char *mt_command_file(int argc, char **argv)
{
	if (optind == argc) {
		mt_command_misused(argv[0], "no file given");
		return NULL;
	}
	if (optind + 1 < argc) {
		mt_command_misused(argv[0], "more than one file given ('%s')", argv[optind + 1]);
		return NULL;
	}
	return argv[optind];
}

bool mt_command_two_files(int argc, char **argv, const char **ret_in, const char **ret_out)
{
	if (argc - optind != 2) {
		mt_command_misused(argv[0], "two files are needed, IN and OUT");
		return false;
	}
	*ret_in = argv[optind];
	*ret_out = argv[optind + 1];
	return true;
}

unsigned mt_command_cores(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return count < 1 ? 1 : (unsigned)count;
}

int mt_command_threads(const char *name, const char *text, unsigned *ret_threads)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || *end || !value || value > MT_THREADS_MAX)
		return mt_command_misused(name, "'%s' is not a number from 1 to %u", text,
					  MT_THREADS_MAX);
	*ret_threads = (unsigned)value;
	return 0;
}

int mt_command_hint(const char *name)
{
	fprintf(stderr, "try '%s --help'\n", name);
	return MT_EXIT_USAGE;
}
