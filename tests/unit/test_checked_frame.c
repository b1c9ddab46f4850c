/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/artifact_reader.h"
#include "common/crc32c.h"
#include "common/frame_enc.h"
#include "common/frame_hint.h"
#include "tests/unit/codec_support.h"

enum { EVENTS = 500, LARGE = 9 << 20 };

/* Bytes that no compressor makes smaller. */
static void fill_random(uint8_t *bytes, size_t len)
{
	uint64_t state = 88172645463325252u;

	for (size_t i = 0; i < len; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		bytes[i] = (uint8_t)(state >> 32);
	}
}

/* One frame with its hint, of the version asked for. Returns where the frame begins. */
static size_t append_hinted(struct mt_buf *file, const struct mt_event *events, size_t n,
			    bool checked)
{
	uint8_t head[MT_CHECKED_HINT_BYTES];
	struct mt_frame_hint hint = { 0 };
	struct mt_frame_enc *enc;
	const uint8_t *frame;
	size_t len, at;

	cr_assert(!mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc));
	cr_assert(!mt_frame_enc_frame(enc, events, n, &frame, &len));
	hint.frame_len = len;
	hint.crc = mt_crc32c(0, frame, len);
	mt_frame_hint_add(&hint, events, n);
	if (checked)
		mt_frame_hint_write_checked(&hint, head);
	else
		mt_frame_hint_write(&hint, head);
	cr_assert(
		!mt_buf_append(file, head, checked ? MT_CHECKED_HINT_BYTES : MT_FRAME_HINT_BYTES));
	at = file->len;
	cr_assert(!mt_buf_append(file, frame, len));
	mt_frame_enc_free(enc);
	return at;
}

static size_t append_frees(struct mt_buf *file, bool checked)
{
	struct mt_event events[EVENTS];

	for (size_t i = 0; i < EVENTS; i++)
		events[i] = (struct mt_event){ .type = MT_EVENT_FREE,
					       .pid = 1,
					       .tid = 1,
					       .timestamp_ns = 1000 + 77 * i,
					       .addr = 4096 + i * i * 16 };
	return append_hinted(file, events, EVENTS, checked);
}

/* Reads all; returns what next() ended with, and counts. */
static int give_all(const struct mt_buf *file, unsigned int threads, bool hints, size_t *ret_n,
		    struct mt_diag *ret_diag)
{
	struct mt_artifact_reader *r = reader_of(file->data, file->len);
	struct mt_artifact_batch batch;
	int ret;

	mt_artifact_reader_use_threads(r, threads);
	mt_artifact_reader_use_hints(r, hints);
	*ret_n = 0;
	while ((ret = mt_artifact_reader_next(r, &batch)) == 1)
		*ret_n += batch.n;
	*ret_diag = *mt_artifact_reader_diag(r);
	mt_artifact_reader_close(r);
	return ret;
}

Test(checked_frame, the_sum_is_crc_32c)
{
	static uint8_t bytes[200000];

	cr_expect_eq(mt_crc32c(0, "123456789", 9), 0xe3069283u); /* the check value of this CRC */
	cr_expect_eq(mt_crc32c_by_tables(0, "123456789", 9), 0xe3069283u);
	cr_expect_eq(mt_crc32c(0, bytes, 32), 0x8a9136aau); /* RFC 3720: 32 bytes of zeroes */
	fill_random(bytes, sizeof(bytes));
	for (size_t len = 0; len < 600; len++)
		cr_expect_eq(mt_crc32c(0, bytes + len % 9, len),
			     mt_crc32c_by_tables(0, bytes + len % 9, len), "%zu", len);
	for (size_t len = 24000; len < sizeof(bytes) - 9; len += 4093)
		cr_expect_eq(mt_crc32c(7, bytes + len % 9, len),
			     mt_crc32c_by_tables(7, bytes + len % 9, len), "%zu", len);
	cr_expect_eq(mt_crc32c(mt_crc32c(0, bytes, 70001), bytes + 70001, 100000),
		     mt_crc32c(0, bytes, 170001));
}

Test(checked_frame, hint_is_laid_out_as_described)
{
	/* The hint of docs/format.md. */
	static const uint8_t want[] = { 0x5d, 0x2a, 0x4d, 0x18, 0x40, 0, 0, 0,
					'M',  'T',  'R',  'K',	2,    2, 0, 0 };
	struct mt_frame_hint h = { .frame_len = 0x102,
				   .events = 3,
				   .forks = 1,
				   .first_ns = 5,
				   .last_ns = 6,
				   .crc = 0xe3069283 };
	struct mt_frame_hint got;
	uint8_t out[MT_CHECKED_HINT_BYTES];

	mt_frame_hint_write_checked(&h, out);
	cr_expect(!memcmp(out, want, sizeof(want)));
	cr_expect(!memcmp(out + 16, "\xfa\x8c\x11\x94", 4), "%02x %02x %02x %02x", out[16], out[17],
		  out[18], out[19]);
	cr_expect(!memcmp(out + 20, "\2\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0", 20));
	cr_expect(!memcmp(out + 52, "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\x83\x92\x06\xe3", 20));
	cr_assert_eq(mt_frame_hint_parse(out + 8, sizeof(out) - 8, &got), 0);
	cr_expect(got.has_crc);
	cr_expect_eq(got.crc, h.crc);
	cr_expect(mt_frame_hint_equal(&got, &h));
	for (size_t cut = 0; cut < sizeof(out) - 8; cut++)
		cr_expect_neq(mt_frame_hint_parse(out + 8, cut, &got), 0);
	for (size_t bit = 0; bit < (sizeof(out) - 8) * 8; bit++) {
		if (bit / 8 == 6 || bit / 8 == 7)
			continue; /* reserved, ignored */
		out[8 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_expect_neq(mt_frame_hint_parse(out + 8, sizeof(out) - 8, &got), 0, "bit %zu",
			      bit);
		out[8 + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	out[12] = 3; /* of a version to come */
	cr_expect_eq(mt_frame_hint_parse(out + 8, sizeof(out) - 8, &got), -ENOENT);
}

Test(checked_frame, every_flipped_bit_is_seen_and_nothing_of_the_frame_given)
{
	struct mt_buf file = { 0 };
	struct mt_diag diag;
	size_t at, end, n;

	append_frees(&file, true);
	at = append_frees(&file, true);
	end = file.len;
	append_frees(&file, true);
	for (unsigned int threads = 0; threads < 2; threads++) {
		cr_assert_eq(give_all(&file, threads, true, &n, &diag), 0);
		cr_assert_eq(n, 3 * EVENTS);
		for (size_t bit = at * 8; bit < end * 8; bit += threads ? 1009 : 5) {
			file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			cr_expect_eq(give_all(&file, threads, true, &n, &diag), -EBADMSG,
				     "bit %zu, %u threads", bit, threads);
			cr_expect_eq(n, EVENTS);
			cr_expect_eq(diag.kind, MT_DIAG_DAMAGED);
			cr_expect_eq(diag.frame, 1);
			cr_expect_eq(diag.offset, at);
			file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	mt_buf_fini(&file);
}

Test(checked_frame, hints_without_a_sum_are_as_good_as_ever)
{
	struct mt_buf file = { 0 };
	struct mt_diag diag;
	size_t n;

	append_frees(&file, false);
	append_frees(&file, true);
	for (unsigned int threads = 0; threads < 2; threads++) {
		cr_expect_eq(give_all(&file, threads, true, &n, &diag), 0);
		cr_expect_eq(n, 2 * EVENTS);
	}
	mt_buf_fini(&file);
}

/* Who does not want hints does not get what they say of damage either. */
Test(checked_frame, without_hints_nothing_is_checked)
{
	struct mt_frame_hint hint = { .events = EVENTS };
	struct mt_buf file = { 0 };
	struct mt_diag diag;
	size_t at = append_frees(&file, true), n;

	hint.frame_len = file.len - at;
	mt_frame_hint_write_checked(&hint, file.data); /* the sum is wrong, and so are the times */
	cr_expect_eq(give_all(&file, 0, true, &n, &diag), -EBADMSG);
	cr_expect_eq(n, 0);
	cr_expect_eq(diag.missing, EVENTS);
	cr_expect_eq(give_all(&file, 0, false, &n, &diag), 0);
	cr_expect_eq(n, EVENTS);
	mt_buf_fini(&file);
}

Test(checked_frame, a_large_frame_is_checked_in_pieces)
{
	uint8_t *bytes = malloc(LARGE);
	struct mt_stack stack = { .bytes = bytes, .bytes_len = LARGE };
	struct mt_event event = {
		.type = MT_EVENT_STACK, .pid = 1, .tid = 1, .timestamp_ns = 5, .stack = &stack
	};
	struct mt_buf file = { 0 };
	struct mt_diag diag;
	size_t at, n;

	cr_assert(bytes);
	fill_random(bytes, LARGE);
	at = append_hinted(&file, &event, 1, true);
	cr_assert_gt(file.len - at, LARGE - 1);
	for (unsigned int threads = 0; threads < 2; threads++) {
		cr_expect_eq(give_all(&file, threads, true, &n, &diag), 0);
		cr_expect_eq(n, 1);
		file.data[file.len - 1000000] ^= 1;
		cr_expect_eq(give_all(&file, threads, true, &n, &diag), -EBADMSG);
		cr_expect_eq(n, 0);
		file.data[file.len - 1000000] ^= 1;
	}
	mt_buf_fini(&file);
	free(bytes);
}
