/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How fast are module events (Mapping, Fork, Exec) found, and how fast is a whole
 * artifact decoded with 1 and 2 threads? zstd alone beside it: reading the
 * frames and decompressing them, and nothing else. ns are for an event of the
 * file, of which cpu ns is what counts where the machine is shared.
 *
 * Files are made as the bench runs: 1 and 10 million events (with MT_LONG=1 also
 * 100 million), by the fused writer and by zstd -5; and with stacks: 8 KiB of
 * bytes in one event of 400. Module events stand in the first frame, as those of
 * most runs do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "bench/harness.h"
#include "bench/trace.h"
#include "common/artifact_reader.h"
#include "common/buf.h"
#include "common/frame_enc.h"
#include "common/frame_fused.h"
#include "common/frame_hint.h"

enum { DISTINCT = 8, STACK_EVERY = 400, STACK_BYTES = 8 << 10, MODULES = 16 };

struct scan_file {
	FILE *file;
	size_t frames;
	uint64_t events;
	uint64_t bytes;
	struct {
		uint64_t at; /* in one run through the distinct frames */
		size_t len;
	} distinct[DISTINCT];
	uint64_t start;	 /* behind the first frame, which is another one */
	uint64_t period; /* bytes of one run */
	struct mt_buf input, content;
	ZSTD_DCtx *dctx;
};

/* What one case does with a file. */
struct scan_case {
	struct scan_file *file;
	bool hints;
	bool modules;
	unsigned int threads;
};

static struct mt_mapping module = { .dev = 8 << 20 | 1,
				    .ino = 4711,
				    .len = 0x22000,
				    .path = "/usr/lib/x86_64-linux-gnu/libc.so.6" };
static struct mt_stack stack;

static void add_stacks(struct mt_event *events)
{
	static uint8_t bytes[STACK_BYTES];
	uint64_t seed = 1;

	/* Words as on a stack: many zeroes, some addresses. */
	for (size_t i = 0; i < sizeof(bytes); i += 8) {
		uint64_t word;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		word = seed >> 62 ? seed >> 40 : 0x7f0000000000u | seed >> 24;
		memcpy(bytes + i, &word, 8);
	}
	stack = (struct mt_stack){ .hash = 1, .bytes = bytes, .bytes_len = sizeof(bytes) };
	for (size_t i = 0; i < MT_BATCH_EVENTS; i += STACK_EVERY) {
		events[i].type = MT_EVENT_STACK;
		events[i].size = 0;
		events[i].flags = 0;
		events[i].stack_hash = 0;
		events[i].stack = &stack;
	}
}

static void add_modules(struct mt_event *events)
{
	module.path_len = (uint32_t)strlen(module.path);
	for (size_t i = 0; i < MODULES; i++) {
		struct mt_event *e = &events[1000 + i * 3001];

		*e = (struct mt_event){ .timestamp_ns = e->timestamp_ns,
					.pid = e->pid,
					.tid = e->tid,
					.type = MT_EVENT_MAPPING,
					.addr = 0x7f0000000000u + i * 0x100000,
					.mapping = &module };
	}
}

/* One frame and the hint in front of it. */
static void append_frame(struct mt_buf *out, const struct mt_event *events,
			 struct mt_frame_enc *enc, struct mt_frame_fused *fused)
{
	struct mt_frame_hint hint = { 0 };
	uint8_t head[MT_FRAME_HINT_BYTES];
	const uint8_t *frame;
	size_t len;
	int ret = fused ? mt_frame_fused_frame(fused, events, MT_BATCH_EVENTS, &frame, &len)
			: mt_frame_enc_frame(enc, events, MT_BATCH_EVENTS, &frame, &len);

	bench_require(!ret, "encoding");
	hint.frame_len = len;
	mt_frame_hint_add(&hint, events, MT_BATCH_EVENTS);
	mt_frame_hint_write(&hint, head);
	bench_require(!mt_buf_append(out, head, sizeof(head)) && !mt_buf_append(out, frame, len),
		      "memory");
}

static struct scan_file *new_file(uint64_t events, bool fused_codec, bool stacks)
{
	struct mt_event *trace = trace_new(TRACE_REAL, (size_t)DISTINCT * MT_BATCH_EVENTS);
	struct scan_file *f = calloc(1, sizeof(*f));
	struct mt_frame_enc *enc = NULL;
	struct mt_frame_fused *fused = NULL;
	struct mt_buf once = { 0 }, first = { 0 };

	bench_require(f && (f->file = tmpfile()) && (f->dctx = ZSTD_createDCtx()), "a file");
	bench_require(fused_codec ? !mt_frame_fused_new(-1, &fused) : !mt_frame_enc_new(-5, &enc),
		      "an encoder");
	for (size_t i = 0; i < DISTINCT; i++) {
		struct mt_event *batch = trace + i * MT_BATCH_EVENTS;

		if (stacks)
			add_stacks(batch);
		f->distinct[i].at = once.len + MT_FRAME_HINT_BYTES;
		append_frame(&once, batch, enc, fused);
		f->distinct[i].len = once.len - f->distinct[i].at;
	}
	add_modules(trace);
	append_frame(&first, trace, enc, fused);
	f->start = first.len;
	f->period = once.len;
	f->frames = (size_t)(events / MT_BATCH_EVENTS / DISTINCT) * DISTINCT;
	f->events = (uint64_t)(f->frames + 1) * MT_BATCH_EVENTS;
	f->bytes = f->start + f->period * (f->frames / DISTINCT);
	bench_require(fwrite(first.data, 1, first.len, f->file) == first.len, "a full disk");
	for (size_t i = 0; i < f->frames; i += DISTINCT)
		bench_require(fwrite(once.data, 1, once.len, f->file) == once.len, "a full disk");
	bench_require(!fflush(f->file), "a full disk");
	bench_require(!mt_buf_reserve(&f->content, 16u << 20) &&
			      !mt_buf_reserve(&f->input, 8u << 20),
		      "memory");
	mt_frame_enc_free(enc);
	mt_frame_fused_free(fused);
	mt_buf_fini(&once);
	mt_buf_fini(&first);
	free(trace);
	return f;
}

static void run_zstd(void *data, struct bench_result *ret)
{
	const struct scan_case *c = data;
	struct scan_file *f = c->file;

	for (size_t i = 0; i < f->frames; i++) {
		size_t len = f->distinct[i % DISTINCT].len;
		off_t at =
			(off_t)(f->start + i / DISTINCT * f->period + f->distinct[i % DISTINCT].at);

		bench_require(pread(fileno(f->file), f->input.data, len, at) == (ssize_t)len,
			      "reading");
		bench_require(
			!ZSTD_isError(ZSTD_decompressDCtx(f->dctx, f->content.data, f->content.cap,
							  f->input.data, len)),
			"decompressing");
	}
	ret->units = (uint64_t)f->frames * MT_BATCH_EVENTS;
	ret->bytes = f->bytes;
}

static void run_reader(void *data, struct bench_result *ret)
{
	static const struct mt_artifact_filter wanted = { .types = MT_EVENT_SEARCHED,
							  .to_ns = UINT64_MAX,
							  .search = true };
	const struct scan_case *c = data;
	struct mt_artifact_reader *reader;
	struct mt_artifact_batch batch;
	uint64_t found = 0;

	bench_require(!mt_artifact_reader_open_fd(dup(fileno(c->file->file)), &reader, NULL),
		      "opening");
	mt_artifact_reader_use_threads(reader, c->threads);
	mt_artifact_reader_use_hints(reader, c->hints);
	if (c->modules)
		mt_artifact_reader_filter(reader, &wanted);
	while (mt_artifact_reader_next(reader, &batch) == 1)
		found += batch.n;
	bench_require(found == (c->modules ? MODULES : c->file->events), "the events");
	mt_artifact_reader_close(reader);
	ret->units = c->file->events;
	ret->bytes = c->file->bytes;
}

static void add(struct bench *b, const char *file_name, const char *name, bench_fn *fn,
		const struct scan_case *c)
{
	struct scan_case *copy = malloc(sizeof(*copy));
	char *text;

	bench_require(copy && asprintf(&text, "%s %s", file_name, name) > 0, "memory");
	*copy = *c;
	bench_add(b, text, fn, copy);
}

/* A file of this name, or NULL when no case of it is wanted. */
static struct scan_file *named_file(const char *name, uint64_t events, bool fused, bool stacks)
{
	const char *filter = getenv("BENCH_FILTER");

	if (filter && strncmp(filter, name, strlen(name)))
		return NULL;
	fprintf(stderr, "making %s\n", name);
	return new_file(events, fused, stacks);
}

static void add_scans(struct bench *b, const char *name, struct scan_file *f)
{
	if (!f)
		return;
	add(b, name, "zstd alone", run_zstd, &(struct scan_case){ f, false, false, 0 });
	add(b, name, "modules, no hints", run_reader, &(struct scan_case){ f, false, true, 1 });
	add(b, name, "modules, hints", run_reader, &(struct scan_case){ f, true, true, 1 });
}

static void add_decodes(struct bench *b, const char *name, struct scan_file *f)
{
	if (!f)
		return;
	add(b, name, "modules, no hints, 2 threads", run_reader,
	    &(struct scan_case){ f, false, true, 2 });
	add(b, name, "all events, no threads", run_reader,
	    &(struct scan_case){ f, true, false, 0 });
	add(b, name, "all events, 1 thread", run_reader, &(struct scan_case){ f, true, false, 1 });
	add(b, name, "all events, 2 threads", run_reader, &(struct scan_case){ f, true, false, 2 });
}

int main(void)
{
	static const struct {
		const char *name;
		uint64_t events;
		bool fused, stacks, more;
	} files[] = {
		{ "10M:", 10000000, true, false, false },
		{ "1M:", 1100000, true, false, false },
		{ "1M zstd -5:", 1100000, false, false, false },
		{ "1M stacks:", 1100000, true, true, false },
		{ "10M zstd -5:", 10000000, false, false, true },
		{ "10M stacks:", 10000000, true, true, true },
		{ "100M:", 100000000, true, false, true },
	};
	static struct bench b;
	const char *wanted = getenv("MT_LONG");
	bool more = wanted && *wanted && strcmp(wanted, "0");

	bench_init(&b, "scan");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct scan_file *f;

		if (files[i].more && !more)
			continue;
		f = named_file(files[i].name, files[i].events, files[i].fused, files[i].stacks);
		add_scans(&b, files[i].name, f);
		if (!i)
			add_decodes(&b, files[i].name, f);
	}
	return bench_run(&b);
}
