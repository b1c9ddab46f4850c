/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/artifact_reader.h"
#include "common/frame_enc.h"
#include "common/frame_hint.h"
#include "tests/unit/codec_support.h"

enum { FRAMES = 6, EVENTS = 100 };

static struct mt_buf file;
static size_t frame_at[FRAMES];
static struct mt_frame_hint hints[FRAMES];

static struct mt_mapping mapping = { .path = "/lib/x.so", .path_len = 9, .len = 4096 };

/* Frame 2 holds a Mapping, frame 4 an Exec and a Fork; times go from 1,000 on by 1. */
static void fill_frame(struct mt_event *events, size_t f)
{
	for (size_t i = 0; i < EVENTS; i++) {
		events[i] = (struct mt_event){ .type = MT_EVENT_FREE,
					       .pid = 1,
					       .tid = 1,
					       .timestamp_ns = 1000 + f * EVENTS + i };
	}
	if (f == 2) {
		events[7].type = MT_EVENT_MAPPING;
		events[7].mapping = &mapping;
	} else if (f == 4) {
		events[8].type = MT_EVENT_EXEC;
		events[9].type = MT_EVENT_FORK;
	}
}

static void append(const void *bytes, size_t len)
{
	cr_assert(!mt_buf_append(&file, bytes, len));
}

static void setup(void)
{
	struct mt_event events[EVENTS];
	uint8_t hint[MT_FRAME_HINT_BYTES];
	struct mt_frame_enc *enc;

	cr_assert(!mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc));
	for (size_t f = 0; f < FRAMES; f++) {
		const uint8_t *frame;
		size_t len;

		fill_frame(events, f);
		cr_assert(!mt_frame_enc_frame(enc, events, EVENTS, &frame, &len));
		hints[f] = (struct mt_frame_hint){ .frame_len = len };
		mt_frame_hint_add(&hints[f], events, EVENTS);
		mt_frame_hint_write(&hints[f], hint);
		append(hint, sizeof(hint));
		frame_at[f] = file.len;
		append(frame, len);
	}
	mt_frame_enc_free(enc);
}

static void teardown(void)
{
	mt_buf_fini(&file);
}

TestSuite(frame_hint, .init = setup, .fini = teardown);

/* Writes another hint in the place of that of frame f. */
static void replace_hint(size_t f, const struct mt_frame_hint *hint)
{
	mt_frame_hint_write(hint, file.data + frame_at[f] - MT_FRAME_HINT_BYTES);
}

static const struct mt_artifact_filter modules = {
	.types = 1u << MT_EVENT_MAPPING | 1u << MT_EVENT_FORK | 1u << MT_EVENT_EXEC,
	.to_ns = UINT64_MAX,
};

static size_t count_filtered(struct mt_artifact_reader *r, const struct mt_artifact_filter *filter,
			     int *ret_end)
{
	struct mt_artifact_batch batch;
	size_t n = 0;

	mt_artifact_reader_filter(r, filter);
	while ((*ret_end = mt_artifact_reader_next(r, &batch)) == 1) {
		for (size_t i = 0; i < batch.n; i++) {
			cr_assert(filter->types & 1u << batch.events[i].type);
			cr_assert_geq(batch.events[i].timestamp_ns, filter->from_ns);
			cr_assert_leq(batch.events[i].timestamp_ns, filter->to_ns);
		}
		n += batch.n;
	}
	return n;
}

Test(frame_hint, what_is_written_is_read)
{
	struct mt_frame_hint got;
	const uint8_t *inside = file.data + MT_SKIPPABLE_HEAD;
	size_t len = MT_FRAME_HINT_BYTES - MT_SKIPPABLE_HEAD;

	cr_assert_eq(mt_frame_hint_parse(inside, len, &got), 0);
	cr_expect(mt_frame_hint_equal(&got, &hints[0]));
	cr_expect_eq(hints[2].mappings, 1);
	cr_expect_eq(hints[4].execs, 1);
	cr_expect_eq(hints[4].forks, 1);
	cr_expect_eq(hints[4].events, EVENTS);
	cr_expect_eq(hints[4].first_ns, 1400);
	cr_expect_eq(hints[4].last_ns, 1499);
	for (size_t cut = 0; cut < len; cut++)
		cr_expect_neq(mt_frame_hint_parse(inside, cut, &got), 0);
}

Test(frame_hint, frame_is_laid_out_as_described)
{
	/* A data frame of 0x0102 bytes with 3 events, 1 of them a Fork, from 5 to 6 ns. */
	static const char want[] = "\x5d\x2a\x4d\x18\x3c\0\0\0MTRK\1\2\0\0";
	struct mt_frame_hint h = {
		.frame_len = 0x102, .events = 3, .forks = 1, .first_ns = 5, .last_ns = 6
	};
	uint8_t out[MT_FRAME_HINT_BYTES];

	mt_frame_hint_write(&h, out);
	cr_expect(!memcmp(out, want, sizeof(want) - 1));
	cr_expect(!memcmp(out + 20, "\2\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0", 20));
	cr_expect(!memcmp(out + 52, "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0", 16));
}

Test(frame_hint, every_flipped_bit_is_seen)
{
	struct mt_frame_hint got;

	for (size_t bit = 0; bit < (MT_FRAME_HINT_BYTES - MT_SKIPPABLE_HEAD) * 8; bit++) {
		uint8_t copy[MT_FRAME_HINT_BYTES - MT_SKIPPABLE_HEAD];

		if (bit / 8 == 6 || bit / 8 == 7)
			continue; /* reserved, ignored */
		memcpy(copy, file.data + MT_SKIPPABLE_HEAD, sizeof(copy));
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_expect_neq(mt_frame_hint_parse(copy, sizeof(copy), &got), 0, "bit %zu", bit);
	}
}

Test(frame_hint, frames_without_what_is_looked_for_are_not_touched)
{
	struct mt_artifact_reader *r;
	int end;

	/* Whoever reads frame 0, 3 or 5 finds damage. */
	file.data[frame_at[0] + 20] ^= 0xff;
	file.data[frame_at[3] + 20] ^= 0xff;
	memset(file.data + frame_at[5] + 4, 0xff, 8);
	r = reader_of(file.data, file.len);
	cr_expect_eq(count_filtered(r, &modules, &end), 3);
	cr_expect_eq(end, 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->passed_frames, 4);
	cr_expect_eq(mt_artifact_reader_totals(r)->frames, FRAMES);
	cr_expect_eq(mt_artifact_reader_totals(r)->hints, FRAMES);
	mt_artifact_reader_close(r);
}

Test(frame_hint, without_hints_the_same_is_found)
{
	struct mt_artifact_reader *r = reader_of(file.data, file.len);
	int end;

	mt_artifact_reader_use_hints(r, false);
	cr_expect_eq(count_filtered(r, &modules, &end), 3);
	cr_expect_eq(end, 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->passed_frames, 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->events, FRAMES * EVENTS);
	mt_artifact_reader_close(r);
}

Test(frame_hint, a_span_of_time_is_found)
{
	static const struct mt_artifact_filter span = { .types = UINT32_MAX,
							.from_ns = 1150,
							.to_ns = 1249 };
	struct mt_artifact_reader *r = reader_of(file.data, file.len);
	int end;

	cr_expect_eq(count_filtered(r, &span, &end), 100);
	cr_expect_eq(mt_artifact_reader_totals(r)->passed_frames, 4);
	mt_artifact_reader_close(r);
}

/* A lie is found by everybody who reads the frame. */
static void expect_lie(size_t f, const struct mt_frame_hint *lie)
{
	struct mt_artifact_reader *r;

	replace_hint(f, lie);
	r = reader_of(file.data, file.len);
	cr_expect_eq(read_all(r, NULL), -EBADMSG);
	cr_expect_eq(mt_artifact_reader_diag(r)->frame, f);
	cr_expect_eq(mt_artifact_reader_diag(r)->offset, frame_at[f]);
	cr_assert(mt_artifact_reader_skip_damaged(r));
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->events, FRAMES * EVENTS);
	mt_artifact_reader_close(r);
	r = reader_of(file.data, file.len);
	mt_artifact_reader_use_hints(r, false);
	cr_expect_eq(read_all(r, NULL), 0);
	mt_artifact_reader_close(r);
	replace_hint(f, &hints[f]);
}

Test(frame_hint, a_lie_is_damage)
{
	struct mt_frame_hint lie = hints[2];

	lie.mappings = 0;
	expect_lie(2, &lie);
	lie = hints[3];
	lie.events++;
	expect_lie(3, &lie);
	lie = hints[1];
	lie.last_ns--;
	expect_lie(1, &lie);
	lie = hints[5];
	lie.frame_len--;
	expect_lie(5, &lie);
}

Test(frame_hint, a_length_that_lands_nowhere_is_not_trusted)
{
	static const uint64_t lens[] = { 0, 1, 1u << 20, UINT64_MAX, UINT64_MAX - 100 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct mt_frame_hint h = hints[1];
		struct mt_artifact_reader *r;
		int end;

		h.frame_len = lens[i];
		replace_hint(1, &h);
		r = reader_of(file.data, file.len);
		cr_expect_eq(count_filtered(r, &modules, &end), 0);
		/* The frame was read, which shows the lie. */
		cr_expect_eq(end, -EBADMSG);
		cr_expect_eq(mt_artifact_reader_diag(r)->frame, 1);
		cr_expect_eq(mt_artifact_reader_load_meta(r), 0);
		mt_artifact_reader_close(r);
	}
}

Test(frame_hint, damaged_and_lost_hints_are_no_error)
{
	struct mt_artifact_reader *r;
	int end;

	/* The hint of frame 0 is damaged; that of frame 1 stands before the hint of frame 2. */
	file.data[30] ^= 1;
	memmove(file.data + frame_at[1], file.data + frame_at[1] + hints[1].frame_len,
		file.len - frame_at[1] - hints[1].frame_len);
	file.len -= hints[1].frame_len;
	r = reader_of(file.data, file.len);
	cr_expect_eq(count_filtered(r, &modules, &end), 3);
	cr_expect_eq(end, 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->bad_hints, 1);
	cr_expect_eq(mt_artifact_reader_totals(r)->frames, FRAMES - 1);
	mt_artifact_reader_close(r);
	r = reader_of(file.data, file.len);
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->events, (FRAMES - 1) * EVENTS);
	mt_artifact_reader_close(r);
}

Test(frame_hint, a_cut_file_needs_no_hint_to_be_right)
{
	for (size_t cut = frame_at[4]; cut < file.len; cut++) {
		struct mt_artifact_reader *r = reader_of(file.data, cut);
		int end;

		cr_assert_leq(count_filtered(r, &modules, &end), 3);
		cr_assert_eq(end, 0, "cut at %zu: %s", cut, mt_artifact_reader_diag(r)->why);
		mt_artifact_reader_close(r);
	}
}
