/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/chunk.h"
#include "sidecar/kernel.h"
#include "sidecar/options.h"

/* What is wrong is said on standard error, which is not looked at here. */
static int parse(char **argv, struct mt_options *options)
{
	static char *copy[16]; /* the options point into it, and outlive the caller's literal */
	int argc = 0;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(null, STDERR_FILENO);
	close(null);
	for (; argv[argc]; argc++)
		copy[argc] = argv[argc];
	copy[argc] = NULL;
	return mt_options_parse(argc, copy, options);
}

#define PARSE(options, ...) \
	parse((char **)(const char *[]){ "memtrack-sidecar", __VA_ARGS__, NULL }, options)

Test(options, defaults)
{
	struct mt_options options;

	cr_assert_eq(PARSE(&options, "true"), 0);
	cr_assert_eq(options.buffer_bytes, 8u << 20);
	cr_assert_eq(options.max_buffers_bytes, 256u << 20);
	cr_assert_eq(options.on_full, MT_POLICY_BLOCK);
	cr_assert_eq(options.max_wait_ms, 10000);
	cr_assert_eq(options.order, MT_ORDER_FAST);
	cr_assert_eq(options.level, -1);
	cr_assert_eq(options.bpf, MT_KERNEL_AUTO);
	cr_assert_null(options.output);
	cr_assert_str_eq(options.command[0], "true");
	cr_assert_null(options.command[1]);
}

Test(options, command_line_wins_over_environment)
{
	struct mt_options options;

	setenv("MEMTRACK_ON_FULL", "drop", 1);
	setenv("MEMTRACK_LEVEL", "3", 1);
	setenv("MEMTRACK_OUTPUT", "", 1);
	cr_assert_eq(PARSE(&options, "--level=-5", "x"), 0);
	cr_assert_eq(options.on_full, MT_POLICY_DROP);
	cr_assert_eq(options.level, -5);
	cr_assert_null(options.output, "an empty variable is one that is not set");
}

Test(options, a_wrong_variable_matters_only_where_it_is_used)
{
	struct mt_options options;

	setenv("MEMTRACK_LEVEL", "high", 1);
	cr_assert_eq(PARSE(&options, "x"), -EINVAL);
	cr_assert_eq(PARSE(&options, "--level=3", "x"), 0);
	cr_assert_eq(options.level, 3);
	cr_assert_eq(PARSE(&options, "--help"), 0);
	setenv("MEMTRACK_OUTPUT", "of-variable", 1);
	cr_assert_eq(PARSE(&options, "--level=3", "x"), 0);
	cr_assert_str_eq(options.output, "of-variable", "the others still apply");
	cr_assert_eq(PARSE(&options, "-oof-line", "--level=3", "x"), 0);
	cr_assert_str_eq(options.output, "of-line");
}

Test(options, forms_of_values)
{
	struct mt_options options;

	cr_assert_eq(PARSE(&options, "-qo", "out", "--buffer-size", "64K", "--bpf=basic",
			   "--max-wait=0.25", "--", "-x", "--force"),
		     0);
	cr_assert(options.quiet);
	cr_assert_not(options.force, "options end at the command");
	cr_assert_str_eq(options.output, "out");
	cr_assert_eq(options.buffer_bytes, 65536);
	cr_assert_eq(options.bpf, MT_KERNEL_BASIC);
	cr_assert_eq(options.max_wait_ms, 250);
	cr_assert_str_eq(options.command[0], "-x");
}

Test(options, abbreviations_must_be_of_one)
{
	struct mt_options options;

	cr_assert_eq(PARSE(&options, "--out=f", "x"), 0);
	cr_assert_str_eq(options.output, "f");
	cr_assert_eq(PARSE(&options, "--max=1M", "x"), -EINVAL);
	cr_assert_eq(PARSE(&options, "--no", "x"), -EINVAL);
}

Test(options, what_is_wrong_is_refused)
{
	static const char *const wrong[] = { "--nonsense",	  "-x",
					     "--buffer-size=63K", "--buffer-size=1Z",
					     "--level=23",	  "--level=",
					     "--workers=-1",	  "--on-full=perhaps",
					     "--force=1",	  "--max-wait=x",
					     "--output=",	  "--max-file-size=20000000T",
					     "--order=fas",	  "--buffer-size=-1M" };
	struct mt_options options;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert_eq(PARSE(&options, wrong[i], "x"), -EINVAL, "%s was taken", wrong[i]);
	cr_assert_eq(PARSE(&options, "--level"), -EINVAL, "a value is missing");
	setenv("MEMTRACK_FORCE", "perhaps", 1);
	cr_assert_eq(PARSE(&options, "x"), -EINVAL, "a variable is wrong");
}

Test(options, flags_as_variables)
{
	static const char *const on[] = { "1", "yes", "true", "on", "YES", "True" };
	static const char *const off[] = { "0", "no", "false", "off", "No", "" };
	static const char *const wrong[] = { "2", "y", "01", " 1", "enable" };
	struct mt_options options;

	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
		setenv("MEMTRACK_QUIET", on[i], 1);
		cr_assert_eq(PARSE(&options, "x"), 0);
		cr_assert(options.quiet, "%s", on[i]);
	}
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		setenv("MEMTRACK_QUIET", off[i], 1);
		cr_assert_eq(PARSE(&options, "x"), 0);
		cr_assert(!options.quiet, "%s", off[i]);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("MEMTRACK_QUIET", wrong[i], 1);
		cr_assert_eq(PARSE(&options, "x"), -EINVAL, "%s was taken", wrong[i]);
	}
}

Test(options, help_fits_a_terminal)
{
	char *text, *line, *next;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	mt_options_help(out);
	fclose(out);
	for (line = text; (next = strchr(line, '\n')); line = next + 1)
		cr_assert_leq(next - line, 80, "%.*s", (int)(next - line), line);
	free(text);
}

Test(options, sizes)
{
	uint64_t bytes = 7;

	cr_assert_eq(mt_parse_size("0", &bytes), 0);
	cr_assert_eq(bytes, 0);
	cr_assert_eq(mt_parse_size("3g", &bytes), 0);
	cr_assert_eq(bytes, UINT64_C(3) << 30);
	cr_assert_eq(mt_parse_size("2KiB", &bytes), 0);
	cr_assert_eq(bytes, 2048);
	cr_assert_eq(mt_parse_size("99999999999999999999", &bytes), -ERANGE);
	cr_assert_eq(mt_parse_size("18446744073709551615K", &bytes), -ERANGE);
	cr_assert_eq(mt_parse_size("", &bytes), -EINVAL);
	cr_assert_eq(mt_parse_size("1KK", &bytes), -EINVAL);
	cr_assert_eq(bytes, 2048, "a refused size changes nothing");
}
