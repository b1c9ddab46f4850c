/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "tools/command.h"
#include "tools/output.h"

static const struct mt_command *const commands[] = {
	&mt_cmd_stat,	 &mt_cmd_dump,	 &mt_cmd_verify,
	&mt_cmd_modules, &mt_cmd_repair, &mt_cmd_recompress,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct mt_command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void print_usage(FILE *out)
{
	fputs("usage: memtrack COMMAND [OPTION...] FILE\n"
	      "Reads what memtrack-preload recorded (<pid>.MemtrackArtifact.msgpack).\n\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("  help       the same as --help; 'help COMMAND' is 'COMMAND --help'\n\n"
	      "Options:\n"
	      "  -h, --help     this text, or that of a command\n"
	      "  -V, --version  the version\n\n"
	      "FILE may be - for standard input.\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 the file is cut or damaged and\n"
	      "was read in part.\n",
	      out);
}

static int print_command_help(const struct mt_command *command)
{
	fputs(command->help, stdout);
	return mt_output_end(stdout);
}

static int help(int argc, char **argv)
{
	const struct mt_command *command;

	if (argc < 2) {
		print_usage(stdout);
		return mt_output_end(stdout);
	}
	command = find_command(argv[1]);
	if (!command)
		return mt_command_misused("memtrack", "there is no command '%s'", argv[1]);
	return print_command_help(command);
}

static int run_command(const struct mt_command *command, int argc, char **argv)
{
	char name[64];

	/* So that a file may have any name, only what stands before "--" can ask for help. */
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return print_command_help(command);
	snprintf(name, sizeof(name), "memtrack %s", command->name);
	argv[0] = name;
	return command->run(argc, argv);
}

int main(int argc, char **argv)
{
	const struct mt_command *command;

	if (argc < 2) {
		print_usage(stderr);
		return MT_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(1, argv);
	if (!strcmp(argv[1], "help"))
		return help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("memtrack " PACKAGE_VERSION);
		return mt_output_end(stdout);
	}
	command = find_command(argv[1]);
	if (!command)
		return mt_command_misused("memtrack", "there is no %s '%s'",
					  argv[1][0] == '-' ? "option" : "command", argv[1]);
	return run_command(command, argc - 1, argv + 1);
}
