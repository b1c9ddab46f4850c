/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/unit/fused_unit.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <zstd.h>

struct mt_event fused_events[MT_BATCH_EVENTS + 1];
struct fused_checker *fused_checker_now;

void fused_begin(void)
{
	fused_checker_now = fused_checker_new();
	cr_assert(fused_checker_now);
}

void fused_end(void)
{
	fused_checker_free(fused_checker_now);
}

void fused_check_frame(size_t n)
{
	const char *wrong = fused_check(fused_checker_now, fused_events, n);

	cr_assert(!wrong, "frame of %zu events: %s", n, wrong);
}

struct mt_buf fused_frame_of(size_t n)
{
	struct mt_frame_fused *fused;
	struct mt_buf buf = { 0 };
	const uint8_t *frame;
	size_t len;

	cr_assert(!mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &fused));
	cr_assert(!mt_frame_fused_frame(fused, fused_events, n, &frame, &len));
	cr_assert(!mt_buf_append(&buf, frame, len));
	mt_frame_fused_free(fused);
	return buf;
}

/* Decompresses in small steps; returns how much came before the input was at its end. */
size_t fused_stream(const struct mt_buf *frame, size_t in_step, uint8_t *content, size_t room,
		    size_t out_step)
{
	ZSTD_DStream *d = ZSTD_createDStream();
	ZSTD_outBuffer out = { content, 0, 0 };
	ZSTD_inBuffer in = { frame->data, 0, 0 };
	size_t before, ret = 1;

	cr_assert(d);
	do {
		before = out.pos + in.pos;
		in.size = in.size < in.pos + in_step ? in.pos + in_step : in.size;
		in.size = in.size < frame->len ? in.size : frame->len;
		out.size = out.pos + out_step < room ? out.pos + out_step : room;
		ret = ZSTD_decompressStream(d, &out, &in);
		cr_assert(!ZSTD_isError(ret), "%s", ZSTD_getErrorName(ret));
	} while (out.pos + in.pos != before || in.size < frame->len);
	ZSTD_freeDStream(d);
	return out.pos;
}

/* As fused_check_frame(), by a decoder that keeps no more of the content than the window. */
void fused_check_streamed(size_t n, size_t in_step, size_t out_step)
{
	struct mt_buf frame = fused_frame_of(n);
	struct mt_frame_enc *enc;
	const uint8_t *want;
	uint8_t *content;
	size_t len;

	cr_assert(!mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc));
	cr_assert(!mt_frame_enc_serialize(enc, fused_events, n, &want, &len));
	content = malloc(len + 1);
	cr_assert_eq(fused_stream(&frame, in_step, content, len + 1, out_step), len);
	cr_assert_arr_eq(content, want, len);
	free(content);
	mt_buf_fini(&frame);
	mt_frame_enc_free(enc);
}

void fused_heap_events(size_t n, unsigned int sites)
{
	struct heap_trace *trace = heap_trace_new(sites, false, 7);

	cr_assert(trace);
	heap_trace_fill(trace, fused_events, n);
	heap_trace_free(trace);
}

uint64_t fused_handed_on(void)
{
	return fused_checker_stats(fused_checker_now)->frames_handed_on;
}

struct mt_event fused_malloc_event(uint64_t i)
{
	return (struct mt_event){ .type = MT_EVENT_MALLOC,
				  .pid = 300,
				  .tid = 301,
				  .timestamp_ns = 5000000000u + i * 150,
				  .addr = 0x7f0012340000u + i * 48,
				  .size = 40 };
}
