/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whatever the bytes of a file: stat, dump and verify end with one of their exit statuses. Runs
 * them in this process over golden files cut at every place and with flipped bits; a sanitizer
 * build sees what a crash would not show. Without criterion, which starts a process for each case.
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/command.h"

static const struct mt_command *const commands[] = { &mt_cmd_stat, &mt_cmd_dump, &mt_cmd_verify,
						     &mt_cmd_modules };
static FILE *tap;
static unsigned cases;
static int failed;

static void verdict(int ok, const char *name)
{
	fprintf(tap, "%sok %u - %s\n", ok ? "" : "not ", ++cases, name);
	fflush(tap);
	failed |= !ok;
}

struct file {
	uint8_t *bytes;
	size_t len;
};

static struct file load(const char *name)
{
	const char *srcdir = getenv("MT_SRCDIR");
	struct file file = { 0 };
	char path[4096];
	FILE *in;

	snprintf(path, sizeof(path), "%s/tests/golden/%s.msgpack", srcdir ? srcdir : ".", name);
	in = fopen(path, "rb");
	if (!in || fseek(in, 0, SEEK_END))
		goto out;
	file.len = (size_t)ftell(in);
	rewind(in);
	file.bytes = malloc(file.len);
	if (file.bytes && fread(file.bytes, 1, file.len, in) != file.len)
		file.len = 0;
out:
	if (in)
		fclose(in);
	return file;
}

/* The exit status of one command over these bytes, or -1. */
static int run_command(const struct mt_command *command, int json, const uint8_t *bytes, size_t len)
{
	char name[] = "memtrack", option[] = "--json", path[64];
	char *argv[] = { name, path, json ? option : NULL, NULL };
	int fd = memfd_create("artifact", MFD_CLOEXEC);
	int status = -1;

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		goto out;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	optind = 0; /* getopt starts anew */
	status = command->run(json ? 3 : 2, argv);
out:
	if (fd >= 0)
		close(fd);
	return status;
}

static int run_all(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		int json = commands[i] == &mt_cmd_stat || commands[i] == &mt_cmd_verify;
		int status = run_command(commands[i], json, bytes, len);

		if (status != MT_EXIT_DONE && status != MT_EXIT_FAILED && status != MT_EXIT_DAMAGED)
			return 0;
	}
	/* The tables for people have their own ways to fail. */
	return run_command(&mt_cmd_stat, 0, bytes, len) >= 0 &&
	       run_command(&mt_cmd_verify, 0, bytes, len) >= 0;
}

static void cut_everywhere(const char *name, size_t step)
{
	struct file file = load(name);
	int ok = file.len > 0;
	char text[128];

	/* The end of a frame apart, a cut file is never taken for a whole one. */
	for (size_t len = 0; ok && len < file.len; len += step) {
		ok = run_all(file.bytes, len);
		if (ok && !strcmp(name, "every_kind") && len)
			ok = run_command(&mt_cmd_dump, 0, file.bytes, len) != MT_EXIT_DONE;
	}
	snprintf(text, sizeof(text), "%s cut at every %zu. byte", name, step);
	verdict(ok, text);
	free(file.bytes);
}

static void flip_bits(const char *name, unsigned rounds)
{
	struct file file = load(name);
	uint64_t state = 88172645463325252ull;
	int ok = file.len > 0;
	char text[128];

	for (unsigned round = 0; ok && round < rounds; round++) {
		size_t places[4];
		unsigned count = 1 + round % 4;

		for (unsigned i = 0; i < count; i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			places[i] = (size_t)(state >> 8) % file.len;
			file.bytes[places[i]] ^= (uint8_t)(1u << (state & 7));
		}
		ok = run_all(file.bytes, file.len);
		state += round;
		/* Back as it was, whatever bits were flipped. */
		free(file.bytes);
		file = load(name);
		ok = ok && file.len > 0;
	}
	snprintf(text, sizeof(text), "%s with flipped bits, %u times", name, rounds);
	verdict(ok, text);
	free(file.bytes);
}

int main(void)
{
	const char *wanted = getenv("MT_LONG");
	unsigned more = wanted && *wanted && strcmp(wanted, "0") ? 20 : 1;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int out = dup(STDOUT_FILENO);

	tap = out >= 0 ? fdopen(out, "w") : NULL;
	if (!tap || null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		return 1;
	cut_everywhere("every_kind", more > 1 ? 1 : 7);
	cut_everywhere("streamed_frame", more > 1 ? 1 : 11);
	cut_everywhere("stacks", more > 1 ? 499 : 4999);
	cut_everywhere("skippable", more > 1 ? 997 : 9973);
	flip_bits("every_kind", 300 * more);
	flip_bits("stacks", 25 * more);
	flip_bits("skippable", 40 * more);
	fprintf(tap, "1..%u\n", cases);
	fclose(tap);
	return failed;
}
