/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/format.h"
#include "common/frame_enc.h"
#include "common/meta_builder.h"
#include "common/run_meta.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/rewrite.h"
#include "tools/text.h"

static const char help[] =
	"usage: memtrack repair [OPTION...] IN OUT\n"
	"Writes what is whole in a cut or damaged artifact into a new one: whole frames\n"
	"as they are, the events in the whole blocks of a frame that was cut, the\n"
	"metadata; hints are made anew, and a note says what is missing. IN may be - for\n"
	"standard input, OUT - for standard output.\n\n"
	"  --force       replace OUT when it exists, once the new file is whole\n"
	"  -h, --help    this text\n\n"
	"Exit status: 0 OUT holds what IN held, or all that was whole, 1 failed, 2 wrong\n"
	"usage.\n";

struct repair {
	struct mt_input input;
	struct mt_rewrite out;
	/* The data frame being read. */
	uint64_t frame;
	struct mt_frame_hint seen;
	uint64_t unknown_before; /* events of unknown types in earlier frames */
	bool cut;
	/* "closed" has to stay the last: it is held back until something follows. */
	bool holds_closed;
	uint64_t closed_at, closed_end;
	uint64_t dropped_meta; /* metadata frames that were damaged */
};

static void put_closed(struct repair *repair)
{
	if (repair->holds_closed)
		(void)mt_rewrite_copy(&repair->out, repair->closed_at, repair->closed_end);
	repair->holds_closed = false;
}

/* A skippable frame: others' are copied, and ours but for hints and what is damaged. */
static void take_skippable(struct repair *repair, const struct mt_frame_extent *e)
{
	uint64_t inside = e->end - e->start - MT_SKIPPABLE_HEAD;
	struct mt_meta_value map;
	const uint8_t *bytes;
	const char *name;
	size_t len;
	int ret;

	if (e->magic == MT_META_MAGIC && inside >= MT_META_HEAD &&
	    inside <= MT_META_HEAD + MT_META_BYTES_MAX) {
		repair->out.error =
			mt_artifact_reader_bytes(repair->input.reader, e->start + MT_SKIPPABLE_HEAD,
						 (size_t)inside, &bytes, &len);
		if (repair->out.error || len < inside)
			return;
		if (!memcmp(bytes, MT_META_TAG, 4) && bytes[4] <= MT_HINT_VERSION_CHECKED &&
		    bytes[5] == MT_META_HINT)
			return;
		ret = mt_meta_parse(bytes, len, &map);
		if (ret == -EBADMSG) {
			repair->dropped_meta++;
			return;
		}
		if (!ret && mt_meta_get_text(&map, "frame", &name, &len) &&
		    len == strlen(MT_META_CLOSED) && !memcmp(name, MT_META_CLOSED, len)) {
			put_closed(repair);
			repair->holds_closed = true;
			repair->closed_at = e->start;
			repair->closed_end = e->end;
			return;
		}
	}
	put_closed(repair);
	(void)mt_rewrite_copy(&repair->out, e->start, e->end);
}

/* A data frame that was read to its end. */
static void take_data(struct repair *repair, const struct mt_frame_extent *e)
{
	const struct mt_artifact_totals *totals = mt_artifact_reader_totals(repair->input.reader);
	uint64_t frame = totals->frames - 1;

	if (repair->frame != frame)
		repair->seen = (struct mt_frame_hint){ 0 };
	put_closed(repair);
	if (mt_rewrite_fill(&repair->out, frame))
		return;
	repair->seen.frame_len = e->end - e->start;
	/* What a type that we do not know counts as, its writer knows. */
	if (totals->unknown == repair->unknown_before && repair->seen.events)
		(void)mt_rewrite_hint_copied(&repair->out, &repair->seen, e->start);
	repair->unknown_before = totals->unknown;
	(void)mt_rewrite_copy(&repair->out, e->start, e->end);
	repair->out.frames++;
	repair->out.events += repair->seen.events;
}

static void observe(void *data, const struct mt_frame_extent *e)
{
	struct repair *repair = data;

	if (repair->out.error)
		return;
	if (mt_frame_is_skippable(e))
		take_skippable(repair, e);
	else
		take_data(repair, e);
}

static void take_batch(struct repair *repair, const struct mt_artifact_batch *batch)
{
	if (batch->cut) {
		put_closed(repair);
		/* The first part of it takes the frame's place. */
		if (!repair->cut)
			(void)mt_rewrite_fill(&repair->out, batch->frame);
		repair->cut = true;
		(void)mt_rewrite_batch(&repair->out, batch);
		return;
	}
	if (batch->frame != repair->frame)
		repair->seen = (struct mt_frame_hint){ 0 };
	repair->frame = batch->frame;
	mt_frame_hint_add(&repair->seen, batch->events, batch->n);
}

/* The note, and the end that the file never got. */
static void finish(struct repair *repair, bool whole)
{
	const struct mt_input *input = &repair->input;
	struct mt_meta_builder note = { 0 }, closed = { 0 };
	const uint8_t *frame;
	size_t len;

	/* An artifact has at least one data frame; damaged ones at the end keep their numbers. */
	(void)mt_rewrite_fill(&repair->out, mt_artifact_reader_totals(input->reader)->frames);
	(void)mt_rewrite_fill(&repair->out, 1);
	if (!whole) {
		mt_meta_init(&note, MT_META_REPAIRED);
		mt_meta_put_str(&note, MT_KEY_VERSION, PACKAGE_VERSION);
		mt_meta_put_u64(&note, MT_KEY_DAMAGED_FRAMES, input->damaged);
		if (!input->missing_unknown && input->cut.kind == MT_DIAG_NONE)
			mt_meta_put_u64(&note, MT_KEY_MISSING_EVENTS, input->missing);
		if (input->cut.kind == MT_DIAG_CUT)
			mt_meta_put_u64(&note, MT_KEY_CUT_AT, input->cut.offset);
		if (repair->out.error || mt_meta_finish(&note, &frame, &len) ||
		    mt_rewrite_meta(&repair->out, frame, len))
			repair->out.error = repair->out.error ? repair->out.error : -ENOMEM;
		mt_meta_fini(&note);
	}
	if (!repair->holds_closed && mt_input_state(input) == MT_INPUT_OPEN) {
		mt_meta_init(&closed, MT_META_CLOSED);
		mt_meta_put_u64(&closed, MT_KEY_EVENTS, repair->out.events);
		if (repair->out.error || mt_meta_finish(&closed, &frame, &len) ||
		    mt_rewrite_meta(&repair->out, frame, len))
			repair->out.error = repair->out.error ? repair->out.error : -ENOMEM;
		mt_meta_fini(&closed);
	}
	put_closed(repair);
}

static int run_repair(struct repair *repair, const char *path, bool force)
{
	static const struct mt_input_options reading = { .keep_going = true };
	struct mt_input *input = &repair->input;
	struct mt_artifact_batch batch;
	FILE *to;
	bool whole;
	int ret;

	ret = mt_rewrite_open(&repair->out, input, path, force);
	if (ret)
		return ret;
	input->copies = true;
	mt_input_use(input, &reading);
	mt_artifact_reader_observe(input->reader, observe, repair);
	while (!repair->out.error && mt_input_next(input, &batch) > 0)
		take_batch(repair, &batch);
	whole = !input->damaged && input->cut.kind == MT_DIAG_NONE && !repair->dropped_meta;
	finish(repair, whole && mt_input_state(input) != MT_INPUT_OPEN);
	if (input->error || repair->out.error) {
		(void)mt_rewrite_close(&repair->out, false);
		return MT_EXIT_FAILED;
	}
	ret = mt_rewrite_close(&repair->out, true);
	if (ret)
		return ret;
	/* Says what was wrong with IN; that OUT has what was whole, is what was asked for. */
	(void)mt_input_verdict(input);
	to = mt_rewrite_report(&repair->out);
	fprintf(to, "%s: %" PRIu64 " %s in %" PRIu64 " %s%s\n", repair->out.name,
		repair->out.events, mt_plural(repair->out.events, "event", "events"),
		repair->out.frames, mt_plural(repair->out.frames, "frame", "frames"),
		whole ? "; nothing was damaged" : "");
	return mt_output_end(to);
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, MT_OPT_FORCE },
		{ 0 },
	};
	static struct repair repair;
	const char *in, *out;
	bool force = false;
	int option, ret;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option != MT_OPT_FORCE)
			return mt_command_hint(argv[0]);
		force = true;
	}
	if (!mt_command_two_files(argc, argv, &in, &out))
		return MT_EXIT_USAGE;
	repair = (struct repair){ .frame = UINT64_MAX, .out = { .level = MT_FRAME_LEVEL_DEFAULT } };
	if (mt_input_open(&repair.input, argv[0], in))
		return MT_EXIT_FAILED;
	ret = run_repair(&repair, out, force);
	mt_input_close(&repair.input);
	return ret;
}

const struct mt_command mt_cmd_repair = {
	.name = "repair",
	.summary = "write what is whole in a cut or damaged file into a new one",
	.help = help,
	.run = run,
};
