/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How fast do frames become events? zstd alone and msgpack-c beside our
 * reader. ns are for an event, bytes those of the file.
 */
#include <msgpack.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "bench/harness.h"
#include "bench/trace.h"
#include "common/artifact_reader.h"
#include "common/buf.h"
#include "common/event_json.h"
#include "common/frame_enc.h"
#include "common/frame_hint.h"

enum { EVENTS = 8 * MT_BATCH_EVENTS };

struct decode_state {
	struct mt_buf file;
	struct mt_buf content;
	int fd;
};

static void run_zstd(void *data, struct bench_result *ret)
{
	struct decode_state *s = data;
	const uint8_t *p = s->file.data, *end = p + s->file.len;

	while (p < end) {
		size_t n = ZSTD_findFrameCompressedSize(p, (size_t)(end - p));
		size_t got = ZSTD_decompress(s->content.data, s->content.cap, p, n);

		bench_require(!ZSTD_isError(got), "decompressing");
		p += n;
	}
	ret->units = EVENTS;
	ret->bytes = s->file.len;
}

static void run_msgpack_c(void *data, struct bench_result *ret)
{
	struct decode_state *s = data;
	const uint8_t *p = s->file.data, *end = p + s->file.len;
	msgpack_unpacked u;

	msgpack_unpacked_init(&u);
	while (p < end) {
		size_t n = ZSTD_findFrameCompressedSize(p, (size_t)(end - p)), at = 0;
		size_t got = ZSTD_decompress(s->content.data, s->content.cap, p, n);

		while (msgpack_unpack_next(&u, (const char *)s->content.data, got, &at) ==
		       MSGPACK_UNPACK_SUCCESS)
			ret->units++;
		p += n;
	}
	msgpack_unpacked_destroy(&u);
	bench_require(ret->units == EVENTS, "msgpack-c");
	ret->bytes = s->file.len;
}

static void read_file(struct decode_state *s, struct mt_buf *json, struct bench_result *ret)
{
	struct mt_artifact_reader *reader;
	struct mt_artifact_batch batch;

	bench_require(!mt_artifact_reader_open_fd(dup(s->fd), &reader, NULL), "opening");
	while (mt_artifact_reader_next(reader, &batch) == 1) {
		ret->units += batch.n;
		if (!json)
			continue;
		json->len = 0;
		for (size_t i = 0; i < batch.n; i++)
			bench_require(!mt_event_json(&batch.events[i], json), "a line");
	}
	mt_artifact_reader_close(reader);
	bench_require(ret->units == EVENTS, "reading");
	ret->bytes = s->file.len;
}

static void run_reader(void *data, struct bench_result *ret)
{
	read_file(data, NULL, ret);
}

static void run_json(void *data, struct bench_result *ret)
{
	struct mt_buf json = { 0 };

	read_file(data, &json, ret);
	mt_buf_fini(&json);
}

/* Finding module events: there are none, as in most frames of most runs. */
static void find_modules(struct decode_state *s, bool hints, struct bench_result *ret)
{
	static const struct mt_artifact_filter modules = {
		.types = 1u << MT_EVENT_MAPPING | 1u << MT_EVENT_FORK | 1u << MT_EVENT_EXEC,
		.to_ns = UINT64_MAX,
	};
	struct mt_artifact_reader *reader;
	struct mt_artifact_batch batch;

	bench_require(!mt_artifact_reader_open_fd(dup(s->fd), &reader, NULL), "opening");
	mt_artifact_reader_use_hints(reader, hints);
	mt_artifact_reader_filter(reader, &modules);
	bench_require(mt_artifact_reader_next(reader, &batch) == 0, "reading");
	mt_artifact_reader_close(reader);
	ret->units = EVENTS;
	ret->bytes = s->file.len;
}

static void run_modules(void *data, struct bench_result *ret)
{
	find_modules(data, true, ret);
}

static void run_modules_without_hints(void *data, struct bench_result *ret)
{
	find_modules(data, false, ret);
}

static struct decode_state *new_state(enum trace_kind kind)
{
	struct mt_event *events = trace_new(kind, EVENTS);
	struct decode_state *s = calloc(1, sizeof(*s));
	struct mt_frame_enc *enc;

	bench_require(s && !mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc), "an encoder");
	for (size_t at = 0; at < EVENTS; at += MT_BATCH_EVENTS) {
		uint8_t hint_bytes[MT_FRAME_HINT_BYTES];
		struct mt_frame_hint hint = { 0 };
		const uint8_t *frame;
		size_t len;

		bench_require(!mt_frame_enc_frame(enc, events + at, MT_BATCH_EVENTS, &frame, &len),
			      "encoding");
		hint.frame_len = len;
		mt_frame_hint_add(&hint, events + at, MT_BATCH_EVENTS);
		mt_frame_hint_write(&hint, hint_bytes);
		bench_require(!mt_buf_append(&s->file, hint_bytes, sizeof(hint_bytes)) &&
				      !mt_buf_append(&s->file, frame, len),
			      "memory");
	}
	bench_require(!mt_buf_reserve(&s->content, MT_BATCH_EVENTS * 192), "memory");
	s->fd = memfd_create("artifact", MFD_CLOEXEC);
	bench_require(s->fd >= 0 && write(s->fd, s->file.data, s->file.len) == (ssize_t)s->file.len,
		      "a file");
	mt_frame_enc_free(enc);
	free(events);
	return s;
}

int main(void)
{
	static struct bench b;
	struct decode_state *real = new_state(TRACE_REAL);
	struct decode_state *random_addr = new_state(TRACE_RANDOM_ADDR);

	bench_init(&b, "decode");
	bench_add(&b, "real: zstd alone", run_zstd, real);
	bench_add(&b, "real: zstd + msgpack-c", run_msgpack_c, real);
	bench_add(&b, "real: our reader", run_reader, real);
	bench_add(&b, "real: our reader, to NDJSON", run_json, real);
	bench_add(&b, "real: module events, hints", run_modules, real);
	bench_add(&b, "real: module events, no hints", run_modules_without_hints, real);
	bench_add(&b, "random addr: zstd alone", run_zstd, random_addr);
	bench_add(&b, "random addr: our reader", run_reader, random_addr);
	return bench_run(&b);
}
