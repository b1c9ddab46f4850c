/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Frames of the fused writer as decoders meet them: in small pieces, with no
 * more memory than the window, cut, one after the other.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "common/format.h"
#include "common/frame_dec.h"
#include "common/fused_plan.h"
#include "tests/unit/fused_unit.h"

TestSuite(fused_frames, .init = fused_begin, .fini = fused_end);

/*
 * The farthest distance in the plan of a frame. libzstd's decoders keep more
 * than the window, so they would not tell that one is too far.
 */
static uint32_t farthest(size_t n)
{
	size_t room = MT_FUSED_BLOCK_TARGET + MT_FUSED_EVENT_MAX + MT_FUSED_LIT_SLACK;
	struct mt_fused_plan *plan = calloc(1, sizeof(*plan));
	uint8_t *lit = malloc(room);
	uint32_t far = 0;

	cr_assert(!mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &plan->serializer));
	mt_fused_plan_begin(plan, fused_events, n);
	while (plan->next < n) {
		cr_assert_eq(mt_fused_plan_block(plan, false, lit), 0);
		for (const struct mt_fused_seq *seq = plan->seqs; seq < plan->out.seq; seq++) {
			uint64_t row = MT_SEQ_ROW(seq->sum, MT_SEQ_OFFSET_SHIFT) / MT_FSE_STATES;
			unsigned int code = (unsigned int)row - MT_FSE_OFFSETS_ROW;
			uint64_t low = seq->low >> (MT_SEQ_BITS(seq->sum) - code);
			uint32_t offset = (uint32_t)(1u << code | low);

			far = offset > 3 && offset - 3 > far ? offset - 3 : far;
		}
	}
	mt_frame_enc_free(plan->serializer);
	free(plan);
	free(lit);
	return far;
}

/* An event whose like is at a distance to the byte: paths fill the content between. */
Test(fused_frames, window_ends_where_it_ends)
{
	static struct mt_mapping fill = { .path_len = 16000 };
	static struct mt_mapping last;
	static char path[16000];
	size_t len, n, rest;
	const uint8_t *content;
	struct mt_frame_enc *enc;

	memset(path, 'x', sizeof(path));
	fill.path = path;
	last = fill;
	cr_assert(!mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc));
	for (int over = -72; over <= 3; over += over < -4 ? 4 : 1) {
		fused_events[0] = fused_malloc_event(0);
		for (n = 1; n < 34; n++) {
			fused_events[n] = fused_malloc_event(n);
			fused_events[n].tid = 302;
			fused_events[n].type = MT_EVENT_MAPPING;
			fused_events[n].mapping = n == 33 ? &last : &fill;
		}
		/* The content up to here becomes the window's size and a little. */
		last.path_len = 9000;
		cr_assert(!mt_frame_enc_serialize(enc, fused_events, n, &content, &len));
		rest = (size_t)((int)MT_FUSED_WINDOW + over) - len;
		last.path_len += (uint32_t)rest;
		cr_assert_leq(last.path_len, sizeof(path));
		fused_events[n++] = fused_malloc_event(1);
		fused_check_frame(n);
		fused_check_streamed(n, 1000, 1000);
		/* Up to the window's size, event 0 is taken; beyond, it is not. */
		if (over <= 0)
			cr_assert_eq(farthest(n), (uint32_t)((int)MT_FUSED_WINDOW + over));
		else
			cr_assert_lt(farthest(n), MT_FUSED_WINDOW / 2);
		/* And the same from another thread, which is laid over it loosely, or byte by byte.
		 */
		fused_events[n - 1].tid = 303;
		fused_check_frame(n);
		fused_check_streamed(n, 1000, 1000);
		cr_assert_leq(farthest(n), MT_FUSED_WINDOW);
	}
	cr_expect_eq(fused_handed_on(), 0);
	mt_frame_enc_free(enc);
}

Test(fused_frames, likes_beyond_the_window)
{
	for (size_t i = 0; i < 60000; i++) {
		fused_events[i] = fused_malloc_event(i);
		/* A thread that comes once in 15,000 events, a megabyte of content. */
		fused_events[i].tid = i % 15000 ? 301 : 999;
	}
	fused_check_frame(60000);
	fused_check_streamed(60000, 1000, 1000);
	cr_expect_leq(farthest(60000), MT_FUSED_WINDOW);
	cr_expect_eq(fused_handed_on(), 0);
}

Test(fused_frames, streams_through_small_buffers)
{
	fused_heap_events(20000, 16);
	fused_check_streamed(20000, 1, 100);
	fused_check_streamed(20000, 100, 7);
	fused_check_streamed(20000, 777, 1000);
	fused_check_streamed(20000, 131075, 131072);
}

/* What a cut file still gives: blocks are within the limit and end between events. */
Test(fused_frames, blocks_end_between_events)
{
	struct mt_frame_dec *dec = mt_frame_dec_new();
	size_t at = 10, blocks = 0, seen = 0;
	struct mt_decoded decoded;
	struct mt_buf frame;
	uint8_t *content = malloc(8 << 20);

	fused_heap_events(MT_BATCH_EVENTS, 16);
	frame = fused_frame_of(MT_BATCH_EVENTS);
	while (at < frame.len) {
		uint32_t head = frame.data[at] | (uint32_t)frame.data[at + 1] << 8 |
				(uint32_t)frame.data[at + 2] << 16;
		struct mt_buf part = { frame.data, at + 3 + (head >> 3), 0 };
		size_t got = fused_stream(&part, part.len, content, 8 << 20, 8 << 20);

		cr_assert_gt(got, seen);
		cr_assert_leq(got - seen, MT_ZSTD_BLOCK_MAX);
		cr_assert_eq(mt_frame_dec_run(dec, content + seen, got - seen, &decoded), 0);
		cr_assert_eq(decoded.consumed, got - seen);
		seen = got;
		at = part.len;
		blocks++;
	}
	cr_expect_eq(at, frame.len);
	cr_expect_gt(blocks, 20);
	free(content);
	mt_buf_fini(&frame);
	mt_frame_dec_free(dec);
}

/* The program of the zstd project, on frames that follow each other. */
Test(fused_frames, zstd_program_takes_the_frames)
{
	char path[] = "/tmp/mt_fused_XXXXXX", command[100];
	struct mt_frame_fused *fused;
	const uint8_t *frame;
	size_t len;
	int fd;

	if (system("command -v zstd >/dev/null"))
		cr_skip_test("the zstd program is not installed");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert(!mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &fused));
	for (size_t n = 0; n <= MT_BATCH_EVENTS; n = n * 3 + 1) {
		fused_heap_events(n, n % 2 ? 0 : 256);
		cr_assert(!mt_frame_fused_frame(fused, fused_events, n, &frame, &len));
		cr_assert_eq(write(fd, frame, len), (ssize_t)len);
	}
	snprintf(command, sizeof(command), "zstd -t -q %s", path);
	cr_expect_eq(system(command), 0);
	close(fd);
	unlink(path);
	mt_frame_fused_free(fused);
}
