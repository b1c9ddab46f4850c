/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/frame_enc.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/rewrite.h"
#include "tools/text.h"

static const char help[] =
	"usage: memtrack recompress [OPTION...] IN OUT\n"
	"Writes an artifact anew, as memtrack-preload would: its frames with hints in front of\n"
	"them. What is in it decompresses to the same bytes. Prints sizes and how long an event\n"
	"takes to encode. IN may be - for standard input.\n\n"
	"  --codec CODEC  what makes the frames: fused (default) or zstd\n"
	"  --level N      zstd level, for the frames that zstd makes (default -1)\n"
	"  --force        replace OUT when it exists\n"
	"  --no-hints     do not use or check what hints say of frames\n"
	"  -h, --help     this text\n\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 IN is cut or damaged: memtrack repair\n"
	"makes a whole file of it.\n";

struct recompress {
	struct mt_input input;
	struct mt_rewrite out;
	uint64_t content; /* bytes, decompressed */
	uint64_t encode_ns;
	uint64_t frame; /* the one that the last batch was of */
};

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Everything but data and hints is copied. */
static void observe(void *data, const struct mt_frame_extent *e)
{
	struct recompress *rc = data;
	uint64_t inside = e->end - e->start - MT_SKIPPABLE_HEAD;
	const uint8_t *bytes;
	size_t len;

	if (!mt_frame_is_skippable(e) || rc->out.error)
		return;
	if (e->magic == MT_META_MAGIC && inside == MT_FRAME_HINT_BYTES - MT_SKIPPABLE_HEAD) {
		rc->out.error = mt_artifact_reader_bytes(
			rc->input.reader, e->start + MT_SKIPPABLE_HEAD, 6, &bytes, &len);
		if (rc->out.error ||
		    (len == 6 && !memcmp(bytes, MT_META_TAG, 4) && bytes[5] == MT_META_HINT))
			return;
	}
	(void)mt_rewrite_copy(&rc->out, e->start, e->end);
}

static void print_bytes(const char *what, uint64_t bytes, double events)
{
	printf("%-9s %" PRIu64 " %s, %.2f an event", what, bytes, mt_plural(bytes, "byte", "bytes"),
	       (double)bytes / events);
}

static void print_sizes(const struct recompress *rc)
{
	uint64_t in = mt_artifact_reader_totals(rc->input.reader)->size, out = rc->out.writer.bytes;
	double events = rc->out.events ? (double)rc->out.events : 1;

	printf("events:   %" PRIu64 " in %" PRIu64 " %s\n", rc->out.events, rc->out.frames,
	       mt_plural(rc->out.frames, "frame", "frames"));
	print_bytes("content:", rc->content, events);
	printf("\n");
	print_bytes("before:", in, events);
	printf("\n");
	print_bytes("after:", out, events);
	printf(", %.3f of before\n", in ? (double)out / (double)in : 0);
	printf("encoding: %.1f ns an event of one processor's time, with the check that it is the "
	       "same\n",
	       (double)rc->encode_ns / events);
	if (rc->out.copied_as_bytes)
		printf("%" PRIu64
		       " %s msgpack that we would write otherwise: compressed as it is, without "
		       "hint\n",
		       rc->out.copied_as_bytes,
		       mt_plural(rc->out.copied_as_bytes, "frame holds", "frames hold"));
}

static int run_recompress(struct recompress *rc, const char *path, bool force,
			  const struct mt_input_options *reading)
{
	struct mt_input *input = &rc->input;
	struct mt_artifact_batch batch;
	int ret = mt_rewrite_open(&rc->out, input, path, force);

	if (ret)
		return ret;
	input->needs_whole = true;
	mt_input_use(input, reading);
	mt_artifact_reader_observe(input->reader, observe, rc);
	while (!rc->out.error && mt_input_next(input, &batch) > 0) {
		uint64_t before = thread_ns();

		/* Frames without events keep their place, so that the others keep their numbers;
		 * where a frame came in parts, the numbers have moved on by themselves. */
		if (batch.frame != rc->frame)
			(void)mt_rewrite_fill(&rc->out, batch.frame);
		rc->frame = batch.frame;
		(void)mt_rewrite_batch(&rc->out, &batch);
		rc->content += batch.content_len;
		rc->encode_ns += thread_ns() - before;
	}
	(void)mt_rewrite_fill(&rc->out, 1);
	ret = input->error ? MT_EXIT_FAILED : mt_input_verdict(input);
	if (rc->out.error || ret) {
		(void)mt_rewrite_close(&rc->out, false);
		return rc->out.error ? MT_EXIT_FAILED : ret;
	}
	ret = mt_rewrite_close(&rc->out, true);
	if (ret)
		return ret;
	print_sizes(rc);
	return mt_output_end(stdout);
}

/* Returns 0 or MT_EXIT_USAGE, said. */
static int take_option(struct recompress *rc, int option, const char *value, const char *command)
{
	char *end;
	long level;

	if (option == MT_OPT_CODEC) {
		if (strcmp(value, "fused") && strcmp(value, "zstd"))
			return mt_command_misused(command, "'%s' is not a codec", value);
		rc->out.codec = strcmp(value, "zstd") ? MT_REWRITE_FUSED : MT_REWRITE_ZSTD;
		return 0;
	}
	if (option != MT_OPT_LEVEL)
		return mt_command_hint(command);
	errno = 0;
	level = strtol(value, &end, 10);
	if (errno || !*value || *end || level < mt_frame_level_min() ||
	    level > mt_frame_level_max() || level == 0)
		return mt_command_misused(command, "'%s' is not a level from %d to %d but 0", value,
					  mt_frame_level_min(), mt_frame_level_max());
	rc->out.level = (int)level;
	return 0;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "codec", required_argument, NULL, MT_OPT_CODEC },
		{ "level", required_argument, NULL, MT_OPT_LEVEL },
		{ "force", no_argument, NULL, MT_OPT_FORCE },
		MT_INPUT_NO_HINTS_OPTION,
		{ 0 },
	};
	struct recompress rc = { .frame = UINT64_MAX, .out = { .level = MT_FRAME_LEVEL_DEFAULT } };
	struct mt_input_options reading = { 0 };
	const char *in, *out;
	bool force = false;
	int option, ret = 0;

	while (!ret && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == MT_OPT_FORCE)
			force = true;
		else if (!mt_input_take_option(&reading, option))
			ret = take_option(&rc, option, optarg, argv[0]);
	}
	if (ret)
		return ret;
	if (!mt_command_two_files(argc, argv, &in, &out))
		return MT_EXIT_USAGE;
	if (mt_input_open(&rc.input, argv[0], in))
		return MT_EXIT_FAILED;
	ret = run_recompress(&rc, out, force, &reading);
	mt_input_close(&rc.input);
	return ret;
}

const struct mt_command mt_cmd_recompress = {
	.name = "recompress",
	.summary = "write a file anew with our frames and hints; prints sizes and speed",
	.help = help,
	.run = run,
};
