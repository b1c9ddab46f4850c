/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/command.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>

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

int mt_command_hint(const char *name)
{
	fprintf(stderr, "try '%s --help'\n", name);
	return MT_EXIT_USAGE;
}
