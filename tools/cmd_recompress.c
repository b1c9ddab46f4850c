/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/format.h"
#include "common/frame_enc.h"
#include "common/meta_builder.h"
#include "tools/command.h"
#include "tools/frame_refs.h"
#include "tools/output.h"
#include "tools/rewrite.h"
#include "tools/text.h"

static const char help[] =
	"usage: memtrack recompress [OPTION...] IN OUT\n"
	"Writes an artifact anew, as memtrack-preload would: its frames with hints in\n"
	"front of them, small ones joined. What is in it decompresses to the same bytes.\n"
	"Prints sizes and how long an event takes to encode. IN may be - for standard\n"
	"input, OUT - for standard output.\n\n"
	"  --codec CODEC  what makes the frames: fused (default) or zstd\n"
	"  --keep-frames  do not join small frames: each keeps its number\n"
	"  --level N      zstd level, for the frames that zstd makes (default -1)\n"
	"  --force        replace OUT when it exists, once the new file is whole\n"
	"  --no-hints     do not use or check what hints say of frames\n"
	"  -h, --help     this text\n\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 IN is cut or damaged: memtrack\n"
	"repair makes a whole file of it.\n";

struct recompress {
	struct mt_input input;
	struct mt_rewrite out;
	uint64_t content; /* bytes, decompressed */
	uint64_t encode_ns;
	bool keep_frames;
	uint64_t frame; /* the one that the last batch was of */
	/* Unless frames are kept: */
	struct mt_frame_refs refs;
	uint64_t unknown_before; /* events of unknown types in earlier batches */
	/* Our metadata from the first "anomalies" on: it waits for the end of the data. */
	struct held {
		uint64_t start, end;
	} * held;
	size_t held_count, held_cap;
};

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether a skippable frame is a hint. */
static bool is_hint(struct recompress *rc, const struct mt_frame_extent *e)
{
	uint64_t inside = e->end - e->start - MT_SKIPPABLE_HEAD;
	const uint8_t *bytes;
	size_t len;

	if (e->magic != MT_META_MAGIC || (inside != MT_FRAME_HINT_BYTES - MT_SKIPPABLE_HEAD &&
					  inside != MT_CHECKED_HINT_BYTES - MT_SKIPPABLE_HEAD))
		return false;
	rc->out.error = mt_artifact_reader_bytes(rc->input.reader, e->start + MT_SKIPPABLE_HEAD, 6,
						 &bytes, &len);
	return !rc->out.error && len == 6 && !memcmp(bytes, MT_META_TAG, 4) &&
	       bytes[5] == MT_META_HINT;
}

/* The map in a metadata frame of ours. False: it is none. */
static bool read_map(struct recompress *rc, uint64_t start, uint64_t end,
		     struct mt_meta_value *ret_map)
{
	uint64_t inside = end - start - MT_SKIPPABLE_HEAD;
	const uint8_t *bytes;
	size_t len;

	if (inside > MT_META_HEAD + MT_META_BYTES_MAX)
		return false;
	rc->out.error = mt_artifact_reader_bytes(rc->input.reader, start + MT_SKIPPABLE_HEAD,
						 (size_t)inside, &bytes, &len);
	return !rc->out.error && len == inside && !mt_meta_parse(bytes, len, ret_map);
}

static bool is_anomalies(const struct mt_meta_value *map)
{
	const char *name;
	size_t len;

	return mt_meta_get_text(map, "frame", &name, &len) && len == strlen(MT_META_ANOMALIES) &&
	       !memcmp(name, MT_META_ANOMALIES, len);
}

/* Whether the frame is metadata that waits for the end of the data: then it is noted. */
static bool hold(struct recompress *rc, const struct mt_frame_extent *e)
{
	struct mt_meta_value map;

	if (rc->keep_frames || e->magic != MT_META_MAGIC || !read_map(rc, e->start, e->end, &map) ||
	    (!rc->held_count && !is_anomalies(&map)))
		return false;
	if (rc->held_count == rc->held_cap) {
		size_t cap = rc->held_cap ? rc->held_cap * 2 : 16;
		struct held *held = reallocarray(rc->held, cap, sizeof(*held));

		if (!held) {
			rc->out.error = -ENOMEM;
			return true;
		}
		rc->held = held;
		rc->held_cap = cap;
	}
	rc->held[rc->held_count++] = (struct held){ e->start, e->end };
	return true;
}

/* Everything but data and hints is copied. */
static void observe(void *data, const struct mt_frame_extent *e)
{
	struct recompress *rc = data;

	if (!mt_frame_is_skippable(e) || rc->out.error || is_hint(rc, e) || hold(rc, e))
		return;
	(void)mt_rewrite_flush(&rc->out);
	(void)mt_rewrite_copy(&rc->out, e->start, e->end);
}

/* All events have their places: the metadata that waits for them. */
static void put_held(struct recompress *rc)
{
	struct mt_meta_value map;

	for (size_t i = 0; i < rc->held_count && !rc->out.error; i++) {
		struct mt_meta_builder builder = { 0 };
		const uint8_t *frame;
		size_t len;

		if (!read_map(rc, rc->held[i].start, rc->held[i].end, &map) ||
		    !is_anomalies(&map)) {
			(void)mt_rewrite_copy(&rc->out, rc->held[i].start, rc->held[i].end);
			continue;
		}
		mt_frame_refs_put(&rc->refs, &map, &builder);
		rc->out.error = mt_meta_finish(&builder, &frame, &len);
		if (!rc->out.error)
			(void)mt_rewrite_meta(&rc->out, frame, len);
		mt_meta_fini(&builder);
	}
}

/* Frames that keep their numbers: those without events too. */
static void keep_frame(struct recompress *rc, const struct mt_artifact_batch *batch)
{
	/* Where a frame came in parts, the numbers have moved on by themselves. */
	if (batch->frame != rc->frame)
		(void)mt_rewrite_fill(&rc->out, batch->frame);
	rc->frame = batch->frame;
	(void)mt_rewrite_batch(&rc->out, batch);
}

static void join_frame(struct recompress *rc, const struct mt_artifact_batch *batch)
{
	uint64_t unknown = mt_artifact_reader_totals(rc->input.reader)->unknown;
	uint64_t count = batch->n + (unknown - rc->unknown_before), frame, index;

	if (!mt_rewrite_join(&rc->out, batch, &frame, &index))
		mt_frame_refs_moved(&rc->refs, batch->frame, batch->in_frame, count, frame, index);
	rc->unknown_before = unknown;
}

/* 0 or a negative errno. What metadata names has to be known before the frames are moved. */
static int prepare_to_join(struct recompress *rc)
{
	struct mt_artifact_reader *reader = rc->input.reader;
	int ret = mt_artifact_reader_load_meta(reader);

	/* More metadata than is kept: who knows what it names. */
	rc->keep_frames = mt_artifact_reader_totals(reader)->dropped_metadata != 0;
	return ret ? ret : mt_frame_refs_load(&rc->refs, reader);
}

static void print_bytes(FILE *to, const char *what, uint64_t bytes, double events)
{
	fprintf(to, "%-9s %" PRIu64 " %s, %.2f an event", what, bytes,
		mt_plural(bytes, "byte", "bytes"), (double)bytes / events);
}

static void print_sizes(const struct recompress *rc, FILE *to)
{
	uint64_t in = mt_artifact_reader_totals(rc->input.reader)->size, out = rc->out.writer.bytes;
	double events = rc->out.events ? (double)rc->out.events : 1;

	fprintf(to, "events:   %" PRIu64 " in %" PRIu64 " %s, before in %" PRIu64 "\n",
		rc->out.events, rc->out.frames, mt_plural(rc->out.frames, "frame", "frames"),
		mt_artifact_reader_totals(rc->input.reader)->frames);
	print_bytes(to, "content:", rc->content, events);
	fprintf(to, "\n");
	print_bytes(to, "before:", in, events);
	fprintf(to, "\n");
	print_bytes(to, "after:", out, events);
	fprintf(to, ", %.3f of before\n", in ? (double)out / (double)in : 0);
	fprintf(to,
		"encoding: %.1f ns an event of one processor's time, with the check that it is the "
		"same\n",
		(double)rc->encode_ns / events);
	if (rc->out.copied_as_bytes)
		fprintf(to,
			"%" PRIu64
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
	uint64_t before;

	if (ret)
		return ret;
	input->needs_whole = true;
	input->copies = true;
	mt_input_use(input, reading);
	if (!rc->keep_frames)
		rc->out.error = prepare_to_join(rc);
	mt_artifact_reader_observe(input->reader, observe, rc);
	while (!rc->out.error && mt_input_next(input, &batch) > 0) {
		before = thread_ns();
		if (rc->keep_frames)
			keep_frame(rc, &batch);
		else
			join_frame(rc, &batch);
		rc->content += batch.content_len;
		rc->encode_ns += thread_ns() - before;
	}
	before = thread_ns();
	(void)mt_rewrite_flush(&rc->out);
	rc->encode_ns += thread_ns() - before;
	(void)mt_rewrite_fill(&rc->out, 1);
	put_held(rc);
	ret = input->error ? MT_EXIT_FAILED : mt_input_verdict(input);
	if (rc->out.error || ret) {
		(void)mt_rewrite_close(&rc->out, false);
		return rc->out.error ? MT_EXIT_FAILED : ret;
	}
	ret = mt_rewrite_close(&rc->out, true);
	if (ret)
		return ret;
	print_sizes(rc, mt_rewrite_report(&rc->out));
	return mt_output_end(mt_rewrite_report(&rc->out));
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
	if (option == MT_OPT_KEEP_FRAMES) {
		rc->keep_frames = true;
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
		{ "keep-frames", no_argument, NULL, MT_OPT_KEEP_FRAMES },
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
	mt_frame_refs_fini(&rc.refs);
	free(rc.held);
	return ret;
}

const struct mt_command mt_cmd_recompress = {
	.name = "recompress",
	.summary = "write a file anew with our frames and hints; prints sizes and speed",
	.help = help,
	.run = run,
};
