/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The files of tests/golden, written with the libraries of the peer's encoder,
 * in both directions.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/artifact_reader.h"
#include "common/frame_enc.h"
#include "tests/unit/codec_support.h"

static struct mt_artifact_reader *open_golden(const char *name)
{
	struct mt_artifact_reader *reader = NULL;
	char *path = golden_path(name);
	struct mt_diag diag;

	cr_assert(!mt_artifact_reader_open(path, &reader, &diag), "%s: %s", name, diag.why);
	free(path);
	return reader;
}

static void expect_json(const char *artifact, const char *json)
{
	struct mt_artifact_reader *reader = open_golden(artifact);
	struct mt_buf want = golden_load(json), got = { 0 };
	size_t i = 0;

	cr_assert_eq(read_all(reader, &got), 0);
	while (i < want.len && i < got.len && want.data[i] == got.data[i])
		i++;
	cr_expect(want.len == got.len && i == got.len, "%s differs at byte %zu (%zu and %zu)",
		  artifact, i, want.len, got.len);
	mt_artifact_reader_close(reader);
	mt_buf_fini(&want);
	mt_buf_fini(&got);
}

Test(golden, every_kind_decodes)
{
	expect_json("every_kind.msgpack", "every_kind.ndjson");
}

Test(golden, stacks_decode)
{
	expect_json("stacks.msgpack", "stacks.ndjson");
}

Test(golden, empty_decodes)
{
	expect_json("empty.msgpack", "empty.ndjson");
}

Test(golden, frames_decode)
{
	struct mt_artifact_reader *reader = open_golden("frames.msgpack");

	expect_json("frames.msgpack", "frames.ndjson");
	cr_assert_eq(read_all(reader, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(reader)->frames, 6);
	cr_expect_eq(mt_artifact_reader_totals(reader)->events, 6000);
	cr_expect_eq(mt_artifact_reader_diag(reader)->kind, MT_DIAG_NONE);
	mt_artifact_reader_close(reader);
}

Test(golden, frame_without_content_size_decodes)
{
	expect_json("streamed_frame.msgpack", "streamed_frame.ndjson");
}

Test(golden, skippable_frames_are_stepped_over)
{
	struct mt_artifact_reader *reader = open_golden("skippable.msgpack");

	expect_json("skippable.msgpack", "skippable.ndjson");
	cr_assert_eq(read_all(reader, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(reader)->skippable, 2);
	cr_expect_eq(mt_artifact_reader_totals(reader)->frames, 6);
	mt_artifact_reader_close(reader);
}

Test(golden, truncated_tail_is_used_up_to_the_cut_and_reported)
{
	struct mt_artifact_reader *reader = open_golden("truncated_tail.msgpack");
	const struct mt_diag *diag = mt_artifact_reader_diag(reader);

	expect_json("truncated_tail.msgpack", "truncated_tail.ndjson");
	cr_assert_eq(read_all(reader, NULL), 0);
	cr_expect_eq(diag->kind, MT_DIAG_CUT);
	cr_expect_eq(diag->frame, 5);
	mt_artifact_reader_close(reader);
}

Test(golden, corrupt_middle_names_frame_and_offset)
{
	struct mt_artifact_reader *reader = open_golden("corrupt_middle.msgpack");
	struct mt_artifact_reader *whole = open_golden("frames.msgpack");
	struct mt_artifact_batch batch;
	const struct mt_diag *diag = mt_artifact_reader_diag(reader);

	/* Where frame 1 begins, the undamaged file tells. */
	cr_assert_eq(mt_artifact_reader_next(whole, &batch), 1);
	cr_assert_eq(mt_artifact_reader_next(whole, &batch), 1);
	cr_assert_eq(batch.frame, 1);
	cr_expect_eq(read_all(reader, NULL), -EBADMSG);
	cr_expect_eq(diag->kind, MT_DIAG_DAMAGED);
	cr_expect_eq(diag->frame, 1);
	cr_expect_eq(diag->offset, batch.offset);
	cr_expect(diag->why[0]);
	cr_expect_eq(mt_artifact_reader_totals(reader)->events, 1000);
	mt_artifact_reader_close(reader);
	mt_artifact_reader_close(whole);
}

Test(golden, reading_goes_on_behind_a_damaged_frame)
{
	struct mt_artifact_reader *reader = open_golden("corrupt_middle.msgpack");

	cr_expect_eq(read_all(reader, NULL), -EBADMSG);
	cr_assert(mt_artifact_reader_skip_damaged(reader));
	cr_expect_eq(read_all(reader, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(reader)->events, 5000);
	cr_expect_eq(mt_artifact_reader_totals(reader)->frames, 6);
	mt_artifact_reader_close(reader);
}

Test(golden, every_kind_encodes_to_the_same_bytes)
{
	struct mt_artifact_reader *reader = open_golden("every_kind.msgpack");
	struct mt_buf want = golden_load("every_kind.raw");
	struct mt_artifact_batch batch;
	struct mt_frame_enc *enc;
	const uint8_t *content;
	size_t len;

	cr_assert_eq(mt_artifact_reader_next(reader, &batch), 1);
	cr_assert(!mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc));
	cr_assert(!mt_frame_enc_serialize(enc, batch.events, batch.n, &content, &len));
	cr_expect(len == want.len && !memcmp(content, want.data, len));
	mt_frame_enc_free(enc);
	mt_artifact_reader_close(reader);
	mt_buf_fini(&want);
}

/* Decoded, encoded again, decoded: the same lines, whatever the level. */
static void expect_round_trip(const char *name, int level)
{
	struct mt_artifact_reader *reader = open_golden(name), *again;
	struct mt_buf want = { 0 }, got = { 0 }, ours = { 0 };
	struct mt_artifact_batch batch;
	struct mt_frame_enc *enc;

	cr_assert(!mt_frame_enc_new(level, &enc));
	while (mt_artifact_reader_next(reader, &batch) == 1) {
		const uint8_t *frame;
		size_t len;

		cr_assert(!mt_frame_enc_frame(enc, batch.events, batch.n, &frame, &len));
		cr_assert(!mt_buf_append(&ours, frame, len));
	}
	mt_artifact_reader_close(reader);
	reader = open_golden(name);
	again = reader_of(ours.data, ours.len);
	cr_expect_eq(read_all(reader, &want), 0);
	cr_expect_eq(read_all(again, &got), 0);
	cr_expect(want.len == got.len && !memcmp(want.data, got.data, got.len), "%s", name);
	mt_artifact_reader_close(reader);
	mt_artifact_reader_close(again);
	mt_frame_enc_free(enc);
	mt_buf_fini(&want);
	mt_buf_fini(&got);
	mt_buf_fini(&ours);
}

Test(golden, our_frames_hold_the_same_events)
{
	static const int levels[] = { MT_FRAME_LEVEL_DEFAULT, -7, 1, 3, 19 };

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		expect_round_trip("every_kind.msgpack", levels[i]);
		expect_round_trip("stacks.msgpack", levels[i]);
		expect_round_trip("frames.msgpack", levels[i]);
	}
}
