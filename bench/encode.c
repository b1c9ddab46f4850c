/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How fast do events become frames, and how small? Of realistic events: msgpack-c and zstd
 * -5, as others do it, and our serializer; of each kind of events: the fused writer, and
 * beside it the oracle, which is our serializer and zstd. ns and bytes are for an event.
 * (bench/fused looks at the fused writer more closely.)
 */
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "bench/harness.h"
#include "bench/trace.h"
#include "common/buf.h"
#include "common/crc32c.h"
#include "common/format.h"
#include "common/frame_enc.h"
#include "common/frame_fused.h"

enum { EVENTS = 8 * MT_BATCH_EVENTS };

struct encode_state {
	const struct mt_event *events;
	struct mt_frame_enc *enc;
	struct mt_frame_fused *fused;
	ZSTD_CCtx *cctx; /* NULL: serialize only */
	struct mt_buf content;
	struct mt_buf frame;
	uint32_t crc;
};

static const char *const type_names[MT_EVENT_TYPES] = {
#define X(type, text) [MT_EVENT_##type] = (text),
	MT_EVENT_NAMES(X)
#undef X
};

static int write_buf(void *data, const char *bytes, size_t len)
{
	return mt_buf_append(data, bytes, len);
}

static void pack_key(msgpack_packer *pk, const char *key)
{
	msgpack_pack_str_with_body(pk, key, strlen(key));
}

static void pack_u64(msgpack_packer *pk, const char *key, uint64_t v)
{
	pack_key(pk, key);
	msgpack_pack_uint64(pk, v);
}

/* The kinds that a trace has. */
static void pack_event(msgpack_packer *pk, const struct mt_event *e)
{
	size_t fields = 5;

	if (e->type != MT_EVENT_FREE)
		fields += 1 + (e->flags & MT_EVENT_HAS_OLD) + (e->stack_hash != 0);
	msgpack_pack_map(pk, fields);
	pack_key(pk, "pid");
	msgpack_pack_int32(pk, e->pid);
	pack_key(pk, "tid");
	msgpack_pack_int32(pk, e->tid);
	pack_u64(pk, "timestamp", e->timestamp_ns);
	pack_u64(pk, "addr", e->addr);
	pack_key(pk, "type");
	pack_key(pk, type_names[e->type]);
	if (e->type == MT_EVENT_FREE)
		return;
	if (e->flags & MT_EVENT_HAS_OLD)
		pack_u64(pk, "old_addr", e->aux);
	pack_u64(pk, "size", e->size);
	if (e->stack_hash)
		pack_u64(pk, "stack_hash", e->stack_hash);
}

static void run_msgpack_c(void *data, struct bench_result *ret)
{
	struct encode_state *s = data;
	msgpack_packer pk;

	msgpack_packer_init(&pk, &s->content, write_buf);
	for (size_t at = 0; at < EVENTS; at += MT_BATCH_EVENTS) {
		s->content.len = 0;
		for (size_t i = 0; i < MT_BATCH_EVENTS; i++)
			pack_event(&pk, &s->events[at + i]);
		if (s->cctx) {
			size_t n;

			bench_require(
				!mt_buf_reserve(&s->frame, ZSTD_compressBound(s->content.len)),
				"memory for a frame");
			n = ZSTD_compress2(s->cctx, s->frame.data, s->frame.cap, s->content.data,
					   s->content.len);
			bench_require(!ZSTD_isError(n), "compressing");
			ret->bytes += n;
		} else {
			ret->bytes += s->content.len;
		}
	}
	ret->units = EVENTS;
}

static void run_serialize(void *data, struct bench_result *ret)
{
	struct encode_state *s = data;

	for (size_t at = 0; at < EVENTS; at += MT_BATCH_EVENTS) {
		const uint8_t *out;
		size_t len;

		bench_require(!mt_frame_enc_serialize(s->enc, s->events + at, MT_BATCH_EVENTS, &out,
						      &len),
			      "serializing");
		ret->bytes += len;
	}
	ret->units = EVENTS;
}

static void run_frame(void *data, struct bench_result *ret)
{
	struct encode_state *s = data;

	for (size_t at = 0; at < EVENTS; at += MT_BATCH_EVENTS) {
		const uint8_t *out;
		size_t len;

		bench_require(
			!mt_frame_enc_frame(s->enc, s->events + at, MT_BATCH_EVENTS, &out, &len),
			"encoding");
		ret->bytes += len;
	}
	ret->units = EVENTS;
}

static void fuse(struct encode_state *s, bool checked, struct bench_result *ret)
{
	for (size_t at = 0; at < EVENTS; at += MT_BATCH_EVENTS) {
		const uint8_t *out;
		size_t len;

		bench_require(!mt_frame_fused_frame(s->fused, s->events + at, MT_BATCH_EVENTS, &out,
						    &len),
			      "encoding");
		if (checked)
			s->crc ^= mt_crc32c(0, out, len);
		ret->bytes += len;
	}
	ret->units = EVENTS;
}

static void run_fused(void *data, struct bench_result *ret)
{
	fuse(data, false, ret);
}

/* With the checksum that goes into the hint. */
static void run_fused_checked(void *data, struct bench_result *ret)
{
	fuse(data, true, ret);
}

static struct encode_state *new_state(const struct mt_event *events, int level, int foreign_level)
{
	struct encode_state *s = calloc(1, sizeof(*s));

	bench_require(s != NULL, "memory");
	s->events = events;
	bench_require(!mt_frame_enc_new(level, &s->enc) && !mt_frame_fused_new(level, &s->fused),
		      "the encoders");
	if (foreign_level) {
		s->cctx = ZSTD_createCCtx();
		bench_require(s->cctx != NULL, "a zstd context");
		ZSTD_CCtx_setParameter(s->cctx, ZSTD_c_compressionLevel, foreign_level);
	}
	return s;
}

static void add_kind(struct bench *b, const char *kind, const struct mt_event *events)
{
	struct encode_state *s = new_state(events, MT_FRAME_LEVEL_DEFAULT, 0);
	char *fused, *checked, *oracle;

	bench_require(asprintf(&fused, "%s: fused", kind) > 0 &&
			      asprintf(&checked, "%s: fused, checksum", kind) > 0 &&
			      asprintf(&oracle, "%s: oracle (serializer, zstd -1)", kind) > 0,
		      "memory");
	bench_add(b, fused, run_fused, s);
	bench_add(b, checked, run_fused_checked, s);
	bench_add(b, oracle, run_frame, s);
}

int main(void)
{
	static const struct {
		const char *name;
		enum trace_kind kind;
	} kinds[] = {
		{ "random addr", TRACE_RANDOM_ADDR }, { "16 stacks", TRACE_STACKS_16 },
		{ "256 stacks", TRACE_STACKS_256 },   { "4096 stacks", TRACE_STACKS_4096 },
		{ "all random", TRACE_ALL_RANDOM },
	};
	static struct bench b;
	const struct mt_event *real = trace_new(TRACE_REAL, EVENTS);

	bench_init(&b, "encode");
	bench_add(&b, "real: msgpack-c + zstd -5", run_msgpack_c, new_state(real, -1, -5));
	bench_add(&b, "real: msgpack-c", run_msgpack_c, new_state(real, -1, 0));
	bench_add(&b, "real: ours, serialize", run_serialize, new_state(real, -1, 0));
	bench_add(&b, "real: ours, frame (-5)", run_frame, new_state(real, -5, 0));
	add_kind(&b, "real", real);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		add_kind(&b, kinds[i].name, trace_new(kinds[i].kind, EVENTS));
	return bench_run(&b);
}
