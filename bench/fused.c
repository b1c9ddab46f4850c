/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The fused writer beside what it replaces, serializer and libzstd, and the
 * serializer alone; by the code for newer processors where this is one, and by
 * the code for all. Then what decompressing either's frames takes. One stream
 * of events after the other, ns and bytes for an event.
 */
#include <stdlib.h>
#include <zstd.h>

#include "bench/harness.h"
#include "bench/trace.h"
#include "common/buf.h"
#include "common/frame_enc.h"
#include "common/frame_fused.h"

enum { FRAMES = 8, CONTENT_MAX = 16 << 20 };

struct fused_state {
	const struct mt_event *events;
	struct mt_frame_enc *enc;
	struct mt_frame_fused *fused;
	struct mt_frame_fused *plain;
	struct mt_buf frames[2][FRAMES]; /* by libzstd, by the fused writer: to decompress */
	uint8_t *content;
};

static const struct mt_event *frame_events(const struct fused_state *s, size_t frame)
{
	return s->events + frame * MT_BATCH_EVENTS;
}

static void run_zstd(void *data, struct bench_result *ret)
{
	struct fused_state *s = data;
	const uint8_t *out;
	size_t len;

	for (size_t i = 0; i < FRAMES; i++) {
		bench_require(!mt_frame_enc_frame(s->enc, frame_events(s, i), MT_BATCH_EVENTS, &out,
						  &len),
			      "encoding");
		ret->bytes += len;
	}
	ret->units = FRAMES * MT_BATCH_EVENTS;
}

static void run_serialize(void *data, struct bench_result *ret)
{
	struct fused_state *s = data;
	const uint8_t *out;
	size_t len;

	for (size_t i = 0; i < FRAMES; i++) {
		bench_require(!mt_frame_enc_serialize(s->enc, frame_events(s, i), MT_BATCH_EVENTS,
						      &out, &len),
			      "serializing");
		ret->bytes += len;
	}
	ret->units = FRAMES * MT_BATCH_EVENTS;
}

static void encode_fused(struct fused_state *s, struct mt_frame_fused *fused,
			 struct bench_result *ret)
{
	const uint8_t *out;
	size_t len;

	for (size_t i = 0; i < FRAMES; i++) {
		bench_require(!mt_frame_fused_frame(fused, frame_events(s, i), MT_BATCH_EVENTS,
						    &out, &len),
			      "encoding");
		ret->bytes += len;
	}
	ret->units = FRAMES * MT_BATCH_EVENTS;
}

static void run_fused(void *data, struct bench_result *ret)
{
	struct fused_state *s = data;

	encode_fused(s, s->fused, ret);
}

static void run_plain(void *data, struct bench_result *ret)
{
	struct fused_state *s = data;

	encode_fused(s, s->plain, ret);
}

static void decode(struct fused_state *s, struct mt_buf *frames, struct bench_result *ret)
{
	for (size_t i = 0; i < FRAMES; i++) {
		size_t n = ZSTD_decompress(s->content, CONTENT_MAX, frames[i].data, frames[i].len);

		bench_require(!ZSTD_isError(n), "decompressing");
		ret->bytes += frames[i].len;
	}
	ret->units = FRAMES * MT_BATCH_EVENTS;
}

static void run_decode_zstd(void *data, struct bench_result *ret)
{
	struct fused_state *s = data;

	decode(s, s->frames[0], ret);
}

static void run_decode_fused(void *data, struct bench_result *ret)
{
	struct fused_state *s = data;

	decode(s, s->frames[1], ret);
}

static void make_frames(struct fused_state *s)
{
	const uint8_t *out;
	size_t len;

	for (size_t i = 0; i < FRAMES; i++) {
		bench_require(!mt_frame_enc_frame(s->enc, frame_events(s, i), MT_BATCH_EVENTS, &out,
						  &len) &&
				      !mt_buf_append(&s->frames[0][i], out, len),
			      "encoding");
		bench_require(!mt_frame_fused_frame(s->fused, frame_events(s, i), MT_BATCH_EVENTS,
						    &out, &len) &&
				      !mt_buf_append(&s->frames[1][i], out, len),
			      "encoding");
	}
}

static int run_stream(struct fused_state *s, const char *name, enum trace_kind kind)
{
	static struct bench b;
	struct mt_event *events = trace_new(kind, FRAMES * MT_BATCH_EVENTS);
	int ret;

	s->events = events;
	make_frames(s);
	bench_init(&b, name);
	bench_add(&b, "serializer and libzstd", run_zstd, s);
	bench_add(&b, "fused", run_fused, s);
	bench_add(&b, "fused, code for all processors", run_plain, s);
	bench_add(&b, "serializer alone", run_serialize, s);
	bench_add(&b, "decompress libzstd's", run_decode_zstd, s);
	bench_add(&b, "decompress fused", run_decode_fused, s);
	ret = bench_run(&b);
	for (size_t i = 0; i < FRAMES; i++) {
		mt_buf_fini(&s->frames[0][i]);
		mt_buf_fini(&s->frames[1][i]);
	}
	free(events);
	return ret;
}

int main(void)
{
	static const struct {
		const char *name;
		enum trace_kind kind;
	} streams[] = {
		{ "real", TRACE_REAL },	       { "addr", TRACE_RANDOM_ADDR },
		{ "16", TRACE_STACKS_16 },     { "256", TRACE_STACKS_256 },
		{ "4096", TRACE_STACKS_4096 }, { "random", TRACE_ALL_RANDOM },
	};
	static struct fused_state s;
	int ret = 0;

	s.content = malloc(CONTENT_MAX);
	bench_require(s.content && !mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &s.enc) &&
			      !mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &s.fused) &&
			      !mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &s.plain),
		      "memory for the writers");
	mt_frame_fused_allow_cpu(s.plain, false);
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		ret |= run_stream(&s, streams[i].name, streams[i].kind);
	mt_frame_enc_free(s.enc);
	mt_frame_fused_free(s.fused);
	mt_frame_fused_free(s.plain);
	free(s.content);
	return ret;
}
