/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "common/artifact_reader.h"
#include "common/event_json.h"
#include "common/format.h"
#include "common/frame_enc.h"
#include "common/meta_builder.h"
#include "tests/unit/codec_support.h"

/* An artifact of ours in memory: open, data frames, closed. */
struct sample {
	struct mt_buf file;
	struct mt_buf json;
	size_t frame_at[8]; /* where data frame n begins; behind the last, where `closed` does */
	size_t lines_at[8]; /* the same in the lines */
};

static void append_meta(struct mt_buf *file, const char *name)
{
	struct mt_meta_builder b;
	const uint8_t *frame;
	size_t len;

	mt_meta_init(&b, name);
	mt_meta_put_str(&b, "state", name);
	cr_assert(!mt_meta_finish(&b, &frame, &len));
	cr_assert(!mt_buf_append(file, frame, len));
	mt_meta_fini(&b);
}

static struct sample make_sample(size_t frames, size_t events)
{
	struct event_store *stores = calloc(events, sizeof(*stores));
	struct mt_event *group = calloc(events, sizeof(*group));
	struct sample s = { 0 };
	struct mt_frame_enc *enc;
	uint64_t seed = 21;

	cr_assert(stores && group && !mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc));
	append_meta(&s.file, MT_META_OPEN);
	for (size_t f = 0; f < frames; f++) {
		const uint8_t *frame;
		size_t len;

		for (size_t i = 0; i < events; i++) {
			rnd_event(&seed, &stores[i], &group[i]);
			cr_assert(!mt_event_json(&group[i], &s.json));
		}
		cr_assert(!mt_frame_enc_frame(enc, group, events, &frame, &len));
		s.frame_at[f] = s.file.len;
		cr_assert(!mt_buf_append(&s.file, frame, len));
		s.lines_at[f + 1] = s.json.len;
	}
	s.frame_at[frames] = s.file.len;
	append_meta(&s.file, MT_META_CLOSED);
	mt_frame_enc_free(enc);
	free(stores);
	free(group);
	return s;
}

static void free_sample(struct sample *s)
{
	mt_buf_fini(&s->file);
	mt_buf_fini(&s->json);
}

Test(artifact_reader, reads_what_was_written)
{
	struct sample s = make_sample(3, 200);
	struct mt_artifact_reader *r = reader_of(s.file.data, s.file.len);
	struct mt_meta_value map;
	struct mt_buf json = { 0 };

	cr_expect_not(mt_artifact_reader_closed(r));
	cr_expect_eq(read_all(r, &json), 0);
	cr_expect(json.len == s.json.len && !memcmp(json.data, s.json.data, json.len));
	cr_expect_eq(mt_artifact_reader_diag(r)->kind, MT_DIAG_NONE);
	cr_expect(mt_artifact_reader_closed(r));
	cr_expect(mt_artifact_reader_meta(r, "open", 0, &map));
	cr_expect_not(mt_artifact_reader_meta(r, "open", 1, &map));
	cr_expect(mt_artifact_reader_meta(r, NULL, 1, &map));
	cr_expect_eq(mt_artifact_reader_totals(r)->metadata, 2);
	cr_expect_eq(mt_artifact_reader_totals(r)->size, s.file.len);
	mt_artifact_reader_close(r);
	mt_buf_fini(&json);
	free_sample(&s);
}

Test(artifact_reader, metadata_is_there_before_the_events)
{
	struct sample s = make_sample(2, 50);
	struct mt_artifact_reader *r = reader_of(s.file.data, s.file.len);
	struct mt_meta_value map;

	cr_expect_eq(mt_artifact_reader_load_meta(r), 0);
	cr_expect(mt_artifact_reader_closed(r));
	cr_expect(mt_artifact_reader_meta(r, "closed", 0, &map));
	cr_expect_eq(read_all(r, NULL), 0);
	/* Not taken twice. */
	cr_expect_eq(mt_artifact_reader_totals(r)->metadata, 2);
	cr_expect_eq(mt_artifact_reader_totals(r)->skippable, 2);
	mt_artifact_reader_close(r);
	free_sample(&s);
}

Test(artifact_reader, batches_tell_their_place)
{
	struct sample s = make_sample(2, 50);
	struct mt_artifact_reader *r = reader_of(s.file.data, s.file.len);
	struct mt_artifact_batch batch;

	for (size_t f = 0; f < 2; f++) {
		cr_assert_eq(mt_artifact_reader_next(r, &batch), 1);
		cr_expect_eq(batch.n, 50);
		cr_expect_eq(batch.frame, f);
		cr_expect_eq(batch.in_frame, 0);
		cr_expect_eq(batch.offset, s.frame_at[f]);
	}
	cr_expect_eq(mt_artifact_reader_next(r, &batch), 0);
	cr_expect_eq(mt_artifact_reader_next(r, &batch), 0);
	mt_artifact_reader_close(r);
	free_sample(&s);
}

/* Whole lines, the same as the file's. Returns how many bytes. */
static size_t expect_head_of(const struct sample *s, const struct mt_buf *json, size_t cut)
{
	cr_assert(json->len <= s->json.len &&
			  (!json->len || !memcmp(json->data, s->json.data, json->len)),
		  "cut at %zu: events that are not in the file", cut);
	return json->len;
}

Test(artifact_reader, every_cut_gives_what_is_whole)
{
	struct sample s = make_sample(3, 30);
	struct mt_buf json = { 0 };
	size_t before = 0;

	for (size_t cut = 0; cut < s.file.len; cut++) {
		struct mt_artifact_reader *r = reader_of(s.file.data, cut);
		const struct mt_diag *diag = mt_artifact_reader_diag(r);
		bool between = cut == s.frame_at[0] || cut == s.frame_at[1] ||
			       cut == s.frame_at[2] || cut == s.frame_at[3];
		size_t f, got;

		json.len = 0;
		cr_assert_eq(read_all(r, &json), 0, "cut at %zu: %s", cut, diag->why);
		cr_assert_eq(diag->kind, between ? MT_DIAG_NONE : MT_DIAG_CUT, "cut at %zu", cut);
		cr_assert_not(mt_artifact_reader_closed(r));
		got = expect_head_of(&s, &json, cut);
		cr_assert_geq(got, before, "cut at %zu: less than of a shorter file", cut);
		before = got;
		for (f = 0; f < 3 && cut >= s.frame_at[f + 1]; f++)
			;
		cr_assert_geq(got, s.lines_at[f], "cut at %zu: a whole frame is missing", cut);
		if (!between && cut > s.frame_at[0] && cut < s.frame_at[3])
			cr_assert(diag->frame == f && diag->offset == s.frame_at[f]);
		cr_assert_eq(mt_artifact_reader_load_meta(r), 0);
		mt_artifact_reader_close(r);
	}
	cr_expect_eq(before, s.json.len);
	mt_buf_fini(&json);
	free_sample(&s);
}

/* A frame of several blocks: the cut one gives those that are whole. */
Test(artifact_reader, whole_blocks_of_a_cut_frame_count)
{
	static struct mt_event events[20000];
	struct mt_artifact_reader *r;
	struct mt_frame_enc *enc;
	const uint8_t *frame;
	size_t len;

	for (size_t i = 0; i < 20000; i++)
		events[i] = (struct mt_event){ .type = MT_EVENT_FREE,
					       .addr = i << 4,
					       .pid = 1,
					       .tid = 1,
					       .timestamp_ns = UINT64_C(1) << 40 | i * 77 };
	cr_assert(!mt_frame_enc_new(1, &enc));
	cr_assert(!mt_frame_enc_frame(enc, events, 20000, &frame, &len));
	r = reader_of(frame, len * 9 / 10);
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_diag(r)->kind, MT_DIAG_CUT);
	cr_expect_gt(mt_artifact_reader_totals(r)->events, 10000);
	cr_expect_lt(mt_artifact_reader_totals(r)->events, 20000);
	mt_artifact_reader_close(r);
	mt_frame_enc_free(enc);
}

/*
 * A damaged length in the middle makes the frame seem to run to the end of the
 * file or beyond. It is never reported as a cut file.
 */
Test(artifact_reader, damaged_length_is_no_cut)
{
	struct sample s = make_sample(4, 40);

	for (size_t at = s.frame_at[1] + 5; at < s.frame_at[1] + 12; at++) {
		for (int v = 0; v < 256; v++) {
			uint8_t was = s.file.data[at];
			struct mt_artifact_reader *r;
			struct mt_buf json = { 0 };
			int ret;

			s.file.data[at] = (uint8_t)v;
			r = reader_of(s.file.data, s.file.len);
			ret = read_all(r, &json);
			cr_assert_neq(mt_artifact_reader_diag(r)->kind, MT_DIAG_CUT,
				      "byte %zu = %d", at, v);
			if (v != was && ret == -EBADMSG) {
				cr_assert_eq(mt_artifact_reader_diag(r)->frame, 1);
				cr_assert_eq(mt_artifact_reader_diag(r)->offset, s.frame_at[1]);
				cr_assert_eq(json.len, s.lines_at[1]);
				/* And what comes behind it can still be had. */
				cr_assert(mt_artifact_reader_skip_damaged(r));
				cr_assert_eq(read_all(r, NULL), 0);
				cr_assert_eq(mt_artifact_reader_totals(r)->frames, 4);
				cr_assert(mt_artifact_reader_closed(r));
			}
			mt_artifact_reader_close(r);
			mt_buf_fini(&json);
			s.file.data[at] = was;
		}
	}
	free_sample(&s);
}

/* Any flipped bit: no harm, and nothing of the frames before it changes. */
Test(artifact_reader, flipped_bits_leave_earlier_frames_alone)
{
	struct sample s = make_sample(3, 40);
	struct mt_buf json = { 0 };
	uint64_t seed = 22;

	for (size_t i = 0; i < 6000; i++) {
		size_t bit = rnd(&seed) % (s.file.len * 8), f;
		struct mt_artifact_reader *r = NULL;
		int fd = memfd_create("flipped", MFD_CLOEXEC);

		s.file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(write(fd, s.file.data, s.file.len), (ssize_t)s.file.len);
		json.len = 0;
		if (!mt_artifact_reader_open_fd(fd, &r, NULL)) {
			int ret = read_all(r, &json);

			for (f = 0; f < 3 && bit / 8 >= s.frame_at[f + 1]; f++)
				;
			cr_assert(bit / 8 < s.frame_at[0] || json.len >= s.lines_at[f]);
			cr_assert(bit / 8 < s.frame_at[0] ||
				  !memcmp(json.data, s.json.data, s.lines_at[f]));
			if (ret == -EBADMSG && mt_artifact_reader_skip_damaged(r))
				(void)read_all(r, NULL); /* only to see that it ends */
			mt_artifact_reader_close(r);
		} else {
			cr_assert_lt(bit / 8, 4);
		}
		s.file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	mt_buf_fini(&json);
	free_sample(&s);
}

Test(artifact_reader, garbage_behind_the_last_frame_is_damage)
{
	struct sample s = make_sample(2, 10);
	size_t len = s.file.len;
	struct mt_artifact_reader *r;

	cr_assert(!mt_buf_append(&s.file, "\0\0\0\0\0", 5));
	r = reader_of(s.file.data, s.file.len);
	cr_expect_eq(read_all(r, NULL), -EBADMSG);
	cr_expect_eq(mt_artifact_reader_diag(r)->kind, MT_DIAG_DAMAGED);
	cr_expect_eq(mt_artifact_reader_diag(r)->offset, len);
	cr_expect_eq(mt_artifact_reader_totals(r)->events, 20);
	cr_expect_not(mt_artifact_reader_skip_damaged(r));
	mt_artifact_reader_close(r);
	free_sample(&s);
}

Test(artifact_reader, other_files_are_refused)
{
	static const char *const files[] = { "#!/bin/sh\n", "\177ELF", "\x86\xa3pid", "x" };
	struct mt_artifact_reader *r = NULL;
	struct mt_diag diag;

	for (size_t i = 0; i < 4; i++) {
		int fd = memfd_create("other", MFD_CLOEXEC);

		cr_assert_eq(write(fd, files[i], strlen(files[i])), (ssize_t)strlen(files[i]));
		cr_expect_eq(mt_artifact_reader_open_fd(fd, &r, &diag), -EBADMSG);
		cr_expect_eq(diag.kind, MT_DIAG_NOT_OURS);
	}
	cr_expect_eq(mt_artifact_reader_open("/nonexistent", &r, &diag), -ENOENT);
	cr_expect_eq(diag.kind, MT_DIAG_SYSTEM);
	cr_expect_eq(mt_artifact_reader_open("/", &r, &diag), -EISDIR);
	mt_artifact_reader_close(NULL);
}

Test(artifact_reader, an_empty_file_is_cut)
{
	struct mt_artifact_reader *r = reader_of("", 0);

	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_diag(r)->kind, MT_DIAG_CUT);
	mt_artifact_reader_close(r);
}

Test(artifact_reader, frames_that_end_inside_an_event_are_damage)
{
	struct mt_buf file = { 0 }, content = { 0 };
	struct mt_event e = { .type = MT_EVENT_FREE, .pid = 1, .tid = 1 };
	struct mt_artifact_reader *r;

	reference_pack(&e, &content);
	append_frame(&file, content.data, content.len);
	append_frame(&file, content.data, content.len - 1);
	append_frame(&file, content.data, content.len);
	r = reader_of(file.data, file.len);
	cr_expect_eq(read_all(r, NULL), -EBADMSG);
	cr_expect_eq(mt_artifact_reader_diag(r)->frame, 1);
	cr_assert(mt_artifact_reader_skip_damaged(r));
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->events, 2);
	mt_artifact_reader_close(r);
	mt_buf_fini(&file);
	mt_buf_fini(&content);
}

Test(artifact_reader, unknown_types_are_counted_over_frames)
{
	static const char unknown[] = "\x81\xa4type\xa3New";
	struct mt_buf file = { 0 };
	struct mt_artifact_reader *r;

	append_frame(&file, unknown, sizeof(unknown) - 1);
	append_frame(&file, unknown, sizeof(unknown) - 1);
	r = reader_of(file.data, file.len);
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->unknown, 2);
	cr_expect_str_eq(mt_artifact_reader_totals(r)->unknown_name, "New");
	mt_artifact_reader_close(r);
	mt_buf_fini(&file);
}

/* A frame of a foreign writer: more events than we put into one, no content size, a checksum. */
Test(artifact_reader, large_foreign_frames_come_in_parts)
{
	enum { EVENTS = 400000 };
	struct mt_buf content = { 0 }, file = { 0 };
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	struct mt_artifact_reader *r;
	struct mt_artifact_batch batch;
	uint64_t next = 0;
	ZSTD_outBuffer out;
	ZSTD_inBuffer in;

	for (uint64_t i = 0; i < EVENTS; i++) {
		struct mt_event e = { .type = MT_EVENT_MALLOC,
				      .size = i,
				      .timestamp_ns = i << 20,
				      .pid = 1000,
				      .tid = 1000,
				      .addr = i << 14 };

		reference_pack(&e, &content);
	}
	cr_assert(cctx && !mt_buf_reserve(&file, ZSTD_compressBound(content.len)));
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 1);
	in = (ZSTD_inBuffer){ content.data, content.len, 0 };
	out = (ZSTD_outBuffer){ file.data, file.cap, 0 };
	while (in.pos < in.size) {
		ZSTD_inBuffer piece = { content.data, in.pos + 100000, in.pos };

		if (piece.size > in.size)
			piece.size = in.size;
		cr_assert(!ZSTD_isError(ZSTD_compressStream2(cctx, &out, &piece, ZSTD_e_continue)));
		in.pos = piece.pos;
	}
	cr_assert_eq(ZSTD_compressStream2(cctx, &out, &in, ZSTD_e_end), 0);
	cr_assert_eq(ZSTD_getFrameContentSize(file.data, out.pos), ZSTD_CONTENTSIZE_UNKNOWN);
	r = reader_of(file.data, out.pos);
	while (mt_artifact_reader_next(r, &batch) == 1) {
		cr_assert_leq(batch.n, MT_BATCH_EVENTS);
		cr_assert_eq(batch.in_frame, next);
		cr_assert_eq(batch.frame, 0);
		for (size_t i = 0; i < batch.n; i++)
			cr_assert_eq(batch.events[i].size, next++);
	}
	cr_expect_eq(next, EVENTS);
	cr_expect_eq(mt_artifact_reader_diag(r)->kind, MT_DIAG_NONE);
	mt_artifact_reader_close(r);
	ZSTD_freeCCtx(cctx);
	mt_buf_fini(&content);
	mt_buf_fini(&file);
}

/* A frame that expands to far more than any memory: read at its own pace, then found wanting. */
Test(artifact_reader, a_bomb_is_damage_and_needs_little_memory)
{
	struct mt_buf file = { 0 };
	struct mt_artifact_reader *r;
	/* Window of 128 MiB, no content size; blocks of 128 KiB of one byte each: a 4 GiB string.
	 */
	const uint8_t head[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88 };
	const uint8_t begin[] = { 0x40, 0, 0, 0x81, 0xa1, 'x', 0xdb, 0xff, 0xff, 0xff, 0xff };
	const uint8_t block[] = { 0x02, 0x00, 0x10, 'a' };

	cr_assert(!mt_buf_append(&file, head, sizeof(head)));
	cr_assert(!mt_buf_append(&file, begin, sizeof(begin)));
	for (int i = 0; i < 32768; i++)
		cr_assert(!mt_buf_append(&file, block, sizeof(block)));
	cr_assert(!mt_buf_append(&file, "\x01\0\0", 3));
	r = reader_of(file.data, file.len);
	cr_expect_eq(read_all(r, NULL), -EBADMSG);
	cr_expect_eq(mt_artifact_reader_diag(r)->kind, MT_DIAG_DAMAGED);
	mt_artifact_reader_close(r);
	mt_buf_fini(&file);
}

Test(artifact_reader, absurd_claims_in_headers_are_damage_or_a_cut)
{
	static const char *const files[] = {
		"\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0", /* content 2^64 - 1
										 */
		"\x28\xb5\x2f\xfd\xc0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0", /* and window */
		"\x28\xb5\x2f\xfd\0\xf8\x01\0\0",	/* window of 2^41 */
		"\x5d\x2a\x4d\x18\xff\xff\xff\xffMTRK", /* skippable frame of 4 GiB */
		"\x28\xb5\x2f\xfd\x03\0\0\0\0\0\0\0",	/* a dictionary */
		"\x28\xb5\x2f\xfd\x08\0\0\0\0\0\0\0",	/* the reserved bit */
		"\x28\xb5\x2f\xfd\0\0\x07\0\0",		/* a block of the reserved type */
	};
	static const size_t lens[] = { 16, 17, 9, 12, 12, 12, 9 };

	for (size_t i = 0; i < 7; i++) {
		struct mt_artifact_reader *r = reader_of(files[i], lens[i]);
		int ret = read_all(r, NULL);

		cr_expect(ret == -EBADMSG || mt_artifact_reader_diag(r)->kind == MT_DIAG_CUT,
			  "file %zu", i);
		cr_expect_eq(mt_artifact_reader_load_meta(r), 0);
		mt_artifact_reader_close(r);
	}
}

Test(artifact_reader, damaged_metadata_is_counted_and_stepped_over)
{
	struct sample s = make_sample(1, 10);
	struct mt_artifact_reader *r;

	s.file.data[25] ^= 1;
	r = reader_of(s.file.data, s.file.len);
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->bad_metadata, 1);
	cr_expect_eq(mt_artifact_reader_totals(r)->metadata, 1);
	cr_expect_eq(mt_artifact_reader_totals(r)->events, 10);
	mt_artifact_reader_close(r);
	free_sample(&s);
}

Test(artifact_reader, metadata_has_a_limit)
{
	struct mt_meta_builder b;
	struct mt_buf file = { 0 };
	char *text = malloc(8 << 20);
	struct mt_artifact_reader *r;
	const uint8_t *frame;
	size_t len;

	cr_assert(text);
	memset(text, 'x', 8 << 20);
	mt_meta_init(&b, "large");
	mt_meta_put_text(&b, "text", text, 8 << 20);
	cr_assert(!mt_meta_finish(&b, &frame, &len));
	for (int i = 0; i < 9; i++)
		cr_assert(!mt_buf_append(&file, frame, len));
	r = reader_of(file.data, file.len);
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_totals(r)->metadata, 7);
	cr_expect_eq(mt_artifact_reader_totals(r)->dropped_metadata, 2);
	mt_artifact_reader_close(r);
	mt_buf_fini(&file);
	mt_meta_fini(&b);
	free(text);
}

static void *feed(void *arg)
{
	const struct sample *s = ((void **)arg)[0];
	int fd = *(int *)((void **)arg)[1];

	for (size_t done = 0; done < s->file.len;) {
		ssize_t n = write(fd, s->file.data + done, s->file.len - done);

		cr_assert_gt(n, 0);
		done += (size_t)n;
	}
	close(fd);
	return NULL;
}

Test(artifact_reader, reads_from_a_pipe)
{
	struct sample s = make_sample(4, 500);
	struct mt_buf json = { 0 };
	struct mt_artifact_reader *r = NULL;
	pthread_t feeder;
	int fds[2];
	void *arg[2] = { &s, &fds[1] };

	cr_assert(!pipe(fds));
	cr_assert(!pthread_create(&feeder, NULL, feed, arg));
	cr_assert(!mt_artifact_reader_open_fd(fds[0], &r, NULL));
	cr_assert(!pthread_join(feeder, NULL));
	cr_expect_eq(read_all(r, &json), 0);
	cr_expect(json.len == s.json.len && !memcmp(json.data, s.json.data, json.len));
	mt_artifact_reader_close(r);
	mt_buf_fini(&json);
	free_sample(&s);
}

Test(artifact_reader, a_file_that_shrinks_is_cut)
{
	struct sample s = make_sample(7, 4000);
	int fd = memfd_create("shrinks", MFD_CLOEXEC), other;
	struct mt_artifact_reader *r = NULL;

	cr_assert_gt(s.file.len, 2u << 20, "larger than what is read at once");
	cr_assert_eq(write(fd, s.file.data, s.file.len), (ssize_t)s.file.len);
	other = dup(fd);
	cr_assert(!mt_artifact_reader_open_fd(fd, &r, NULL));
	cr_assert(!ftruncate(other, (off_t)s.frame_at[5] + 100));
	cr_expect_eq(read_all(r, NULL), 0);
	cr_expect_eq(mt_artifact_reader_diag(r)->kind, MT_DIAG_CUT);
	cr_expect_eq(mt_artifact_reader_totals(r)->events, 20000);
	mt_artifact_reader_close(r);
	close(other);
	free_sample(&s);
}
