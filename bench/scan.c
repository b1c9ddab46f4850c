/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How fast are module events (Mapping, Fork, Exec) found, and how fast is a whole
 * artifact decoded, on one core and on all? zstd alone beside it: reading the
 * frames and decompressing them, and nothing else. ns are for an event of the
 * file; cpu ns are of all threads together, and what counts where the machine is
 * shared.
 *
 * Files are made as the bench runs, in TMPDIR: of 1 and 10 million events, by the
 * fused writer and by zstd -5; with stacks: 8 KiB of bytes in one event of 400.
 * Module events stand in the first frame, as those of most runs do; "spread": in
 * every frame. With MT_LONG=1 all of that also for 10 million events, and files of
 * 100 million, which take 1.1 GB each while they are measured. A BENCH_FILTER of a
 * file's name ("100M stacks:") makes and measures that file only.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
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

/* What a file is made of. */
struct scan_spec {
	const char *name;
	uint64_t events;
	bool fused, stacks, spread;
	bool decode; /* also read as a whole */
	bool more;   /* with MT_LONG=1 only */
};

struct scan_file {
	int fd;
	size_t frames; /* behind the first */
	uint64_t events;
	uint64_t modules;
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
	bool one_core;
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

static int open_unnamed(uint64_t bytes)
{
	const char *dir = getenv("TMPDIR");
	struct statvfs fs;
	int fd;

	dir = dir && *dir ? dir : "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	bench_require(fd >= 0 && !fstatvfs(fd, &fs), "a file in TMPDIR");
	bench_require(fs.f_bavail * fs.f_frsize > bytes, "a file in TMPDIR: there is no room");
	return fd;
}

static void put(int fd, const struct mt_buf *bytes)
{
	for (size_t done = 0; done < bytes->len;) {
		ssize_t n = write(fd, bytes->data + done, bytes->len - done);

		bench_require(n > 0, "writing");
		done += (size_t)n;
	}
}

static void write_file(struct scan_file *f, const struct mt_buf *first, const struct mt_buf *once)
{
	f->start = first->len;
	f->period = once->len;
	f->bytes = f->start + f->period * (f->frames / DISTINCT);
	f->fd = open_unnamed(f->bytes);
	put(f->fd, first);
	for (size_t i = 0; i < f->frames; i += DISTINCT)
		put(f->fd, once);
}

static struct scan_file *new_file(const struct scan_spec *spec)
{
	struct mt_event *trace = trace_new(TRACE_REAL, (size_t)DISTINCT * MT_BATCH_EVENTS);
	struct scan_file *f = calloc(1, sizeof(*f));
	struct mt_frame_enc *enc = NULL;
	struct mt_frame_fused *fused = NULL;
	struct mt_buf once = { 0 }, first = { 0 };

	bench_require(f && (f->dctx = ZSTD_createDCtx()), "memory");
	bench_require(spec->fused ? !mt_frame_fused_new(-1, &fused) : !mt_frame_enc_new(-5, &enc),
		      "an encoder");
	for (size_t i = 0; i < DISTINCT; i++) {
		struct mt_event *batch = trace + i * MT_BATCH_EVENTS;

		if (spec->stacks)
			add_stacks(batch);
		if (spec->spread)
			add_modules(batch);
		f->distinct[i].at = once.len + MT_FRAME_HINT_BYTES;
		append_frame(&once, batch, enc, fused);
		f->distinct[i].len = once.len - f->distinct[i].at;
	}
	add_modules(trace);
	append_frame(&first, trace, enc, fused);
	f->frames = (size_t)(spec->events / MT_BATCH_EVENTS / DISTINCT) * DISTINCT;
	f->events = (uint64_t)(f->frames + 1) * MT_BATCH_EVENTS;
	f->modules = (spec->spread ? f->frames + 1 : 1) * MODULES;
	write_file(f, &first, &once);
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

/* This thread, and those that it will make, on one processor or on all that there were. */
static void use_cores(bool one)
{
	static cpu_set_t all;
	cpu_set_t set;

	if (!CPU_COUNT(&all))
		bench_require(!sched_getaffinity(0, sizeof(all), &all), "the processors");
	set = all;
	for (int cpu = 0, kept = 0; one && cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && kept++)
			CPU_CLR(cpu, &set);
	}
	bench_require(!sched_setaffinity(0, sizeof(set), &set), "the processors");
}

static void run_zstd(void *data, struct bench_result *ret)
{
	const struct scan_case *c = data;
	struct scan_file *f = c->file;

	use_cores(true);
	for (size_t i = 0; i < f->frames; i++) {
		size_t len = f->distinct[i % DISTINCT].len;
		off_t at =
			(off_t)(f->start + i / DISTINCT * f->period + f->distinct[i % DISTINCT].at);

		bench_require(pread(f->fd, f->input.data, len, at) == (ssize_t)len, "reading");
		bench_require(
			!ZSTD_isError(ZSTD_decompressDCtx(f->dctx, f->content.data, f->content.cap,
							  f->input.data, len)),
			"decompressing");
	}
	use_cores(false);
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

	use_cores(c->one_core);
	bench_require(!mt_artifact_reader_open_fd(dup(c->file->fd), &reader, NULL), "opening");
	mt_artifact_reader_use_threads(reader, MT_ARTIFACT_ALL_CORES);
	mt_artifact_reader_use_hints(reader, c->hints);
	if (c->modules)
		mt_artifact_reader_filter(reader, &wanted);
	while (mt_artifact_reader_next(reader, &batch) == 1)
		found += batch.n;
	bench_require(found == (c->modules ? c->file->modules : c->file->events), "the events");
	mt_artifact_reader_close(reader);
	use_cores(false);
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

static void add_file(struct bench *b, const struct scan_spec *spec)
{
	const char *filter = getenv("BENCH_FILTER");
	const char *name = spec->name;
	struct scan_file *f;

	/* Without a case that is wanted, none is made. */
	if (filter && strncmp(filter, name, strlen(name)))
		return;
	fprintf(stderr, "making %s\n", name);
	f = new_file(spec);
	add(b, name, "zstd alone", run_zstd, &(struct scan_case){ f, false, false, true });
	add(b, name, "modules, no hints", run_reader, &(struct scan_case){ f, false, true, true });
	add(b, name, "modules, no hints, all cores", run_reader,
	    &(struct scan_case){ f, false, true, false });
	add(b, name, "modules, hints", run_reader, &(struct scan_case){ f, true, true, true });
	if (!spec->decode)
		return;
	add(b, name, "all events", run_reader, &(struct scan_case){ f, true, false, true });
	add(b, name, "all events, all cores", run_reader,
	    &(struct scan_case){ f, true, false, false });
}

int main(void)
{
	static const struct scan_spec specs[] = {
		{ "10M:", 10000000, .fused = true, .decode = true },
		{ "1M:", 1100000, .fused = true },
		{ "1M zstd -5:", 1100000, .fused = false },
		{ "1M stacks:", 1100000, .fused = true, .stacks = true },
		{ "1M spread:", 1100000, .fused = true, .spread = true },
		{ "10M zstd -5:", 10000000, .fused = false, .more = true },
		{ "10M stacks:", 10000000, .fused = true, .stacks = true, .more = true },
		{ "10M spread:", 10000000, .fused = true, .spread = true, .more = true },
		{ "100M:", 100000000, .fused = true, .more = true },
		{ "100M stacks:", 100000000, .fused = true, .stacks = true, .more = true },
	};
	static struct bench b;
	const char *wanted = getenv("MT_LONG");
	bool more = wanted && *wanted && strcmp(wanted, "0");

	bench_init(&b, "scan");
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (!specs[i].more || more)
			add_file(&b, &specs[i]);
	return bench_run(&b);
}
