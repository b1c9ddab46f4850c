/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The subcommands of memtrack. Each gets its own arguments, with argv[0] its name as messages show
 * it ("memtrack stat"), and returns the exit status of the program.
 */
#ifndef MT_TOOLS_COMMAND_H
#define MT_TOOLS_COMMAND_H

#include <stdbool.h>

enum mt_exit {
	MT_EXIT_DONE = 0,
	MT_EXIT_FAILED = 1, /* verify: contradictions or losses */
	MT_EXIT_USAGE = 2,
	MT_EXIT_DAMAGED = 3, /* the artifact is cut or damaged; what is whole was used */
};

struct mt_command {
	const char *name;
	const char *summary; /* one line for `memtrack --help` */
	const char *help;    /* what `memtrack NAME --help` prints */
	int (*run)(int argc, char **argv);
};

extern const struct mt_command mt_cmd_stat;
extern const struct mt_command mt_cmd_dump;
extern const struct mt_command mt_cmd_verify;
extern const struct mt_command mt_cmd_modules;
extern const struct mt_command mt_cmd_repair;
extern const struct mt_command mt_cmd_recompress;

/* Values that getopt_long() gives for options without a short form. */
enum mt_long_option {
	MT_OPT_JSON = 256,
	MT_OPT_WAIT,
	MT_OPT_ALL,
	MT_OPT_PID,
	MT_OPT_TID,
	MT_OPT_TYPE,
	MT_OPT_FROM,
	MT_OPT_TO,
	MT_OPT_LIMIT,
	MT_OPT_THREADS,
	MT_OPT_NO_HINTS,
	MT_OPT_KEEP_GOING,
	MT_OPT_TABLE,
	MT_OPT_CODEC,
	MT_OPT_LEVEL,
	MT_OPT_FORCE,
	MT_OPT_REQUIRE_COMPLETE,
	MT_OPT_KEEP_FRAMES,
};

/*
 * The one file that a command takes, out of what getopt_long() left; NULL, having said so, when
 * there is not exactly one.
 */
const char *mt_command_file(int argc, char **argv);
/* The same for a command that takes two; returns whether there are. */
bool mt_command_two_files(int argc, char **argv, const char **ret_in, const char **ret_out);

/* The cores that this process may use: what --threads is when it is not given. */
#define MT_THREADS_MAX 1024u
unsigned mt_command_cores(void);

/* The N of --threads: 1 to MT_THREADS_MAX. 0, or MT_EXIT_USAGE having said why. */
int mt_command_threads(const char *name, const char *text, unsigned *ret_threads);

/* Says "NAME: message; try 'NAME --help'" and returns MT_EXIT_USAGE. */
int mt_command_misused(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* After a message of getopt_long(): says where help is and returns MT_EXIT_USAGE. */
int mt_command_hint(const char *name);

#endif
