/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The fused writer: any zstd decoder gives from its frames what the serializer
 * makes of the events, byte for byte. fused_check() holds this for a frame, by
 * the code for all processors and the code for newer ones.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "common/format.h"
#include "common/frame_dec.h"
#include "common/fused_seq.h"
#include "tests/unit/codec_support.h"
#include "tests/unit/fused_support.h"

static struct mt_event events[MT_BATCH_EVENTS + 1];
static struct fused_checker *checker;

static void begin(void)
{
	checker = fused_checker_new();
	cr_assert(checker);
}

static void end(void)
{
	fused_checker_free(checker);
}

TestSuite(fused, .init = begin, .fini = end);

static void check(size_t n)
{
	const char *wrong = fused_check(checker, events, n);

	cr_assert(!wrong, "frame of %zu events: %s", n, wrong);
}

/* The frame of events[0, n) in memory of its own. */
static struct mt_buf frame_of(size_t n)
{
	struct mt_frame_fused *fused;
	struct mt_buf buf = { 0 };
	const uint8_t *frame;
	size_t len;

	cr_assert(!mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &fused));
	cr_assert(!mt_frame_fused_frame(fused, events, n, &frame, &len));
	cr_assert(!mt_buf_append(&buf, frame, len));
	mt_frame_fused_free(fused);
	return buf;
}

static void heap_events(size_t n, unsigned int sites)
{
	struct heap_trace *trace = heap_trace_new(sites, false, 7);

	cr_assert(trace);
	heap_trace_fill(trace, events, n);
	heap_trace_free(trace);
}

static uint64_t handed_on(void)
{
	return fused_checker_stats(checker)->frames_handed_on;
}

static struct mt_event malloc_event(uint64_t i)
{
	return (struct mt_event){ .type = MT_EVENT_MALLOC,
				  .pid = 300,
				  .tid = 301,
				  .timestamp_ns = 5000000000u + i * 150,
				  .addr = 0x7f0012340000u + i * 48,
				  .size = 40 };
}

static void golden(const char *name)
{
	struct mt_artifact_reader *reader;
	struct mt_artifact_batch batch;
	char *path = golden_path(name);
	size_t frames = 0;
	int ret;

	cr_assert(!mt_artifact_reader_open(path, &reader, NULL));
	while ((ret = mt_artifact_reader_next(reader, &batch)) == 1) {
		const char *wrong = fused_check(checker, batch.events, batch.n);

		cr_assert(!wrong, "%s, batch %zu: %s", name, frames, wrong);
		frames++;
	}
	cr_assert_eq(ret, 0);
	cr_assert_gt(frames, 0);
	mt_artifact_reader_close(reader);
	free(path);
}

Test(fused, golden_events_come_back)
{
	golden("every_kind.msgpack");
	golden("frames.msgpack");
	golden("stacks.msgpack");
}

/* Against the bytes of the peer's own library, not only against our serializer. */
Test(fused, golden_content_is_the_peers)
{
	struct mt_buf file = golden_load("every_kind.msgpack"), raw = golden_load("every_kind.raw");
	struct mt_artifact_reader *reader = reader_of(file.data, file.len);
	struct mt_artifact_batch batch;
	struct mt_buf frame;
	uint8_t *content = malloc(raw.len + 1);

	cr_assert_eq(mt_artifact_reader_next(reader, &batch), 1);
	memcpy(events, batch.events, batch.n * sizeof(events[0]));
	frame = frame_of(batch.n);
	cr_assert_eq(ZSTD_decompress(content, raw.len + 1, frame.data, frame.len), raw.len);
	cr_expect_arr_eq(content, raw.data, raw.len);
	cr_expect_lt(frame.len, raw.len / 2);
	mt_artifact_reader_close(reader);
	mt_buf_fini(&frame);
	mt_buf_fini(&file);
	mt_buf_fini(&raw);
	free(content);
}

Test(fused, no_events_are_an_empty_frame)
{
	check(0);
	cr_expect_eq(handed_on(), 0);
}

Test(fused, frames_of_every_small_size)
{
	heap_events(300, 16);
	for (size_t n = 1; n <= 300; n++)
		check(n);
}

Test(fused, largest_frames)
{
	heap_events(MT_BATCH_EVENTS, 16);
	check(MT_BATCH_EVENTS - 1);
	check(MT_BATCH_EVENTS);
	cr_expect_eq(handed_on(), 0);
}

Test(fused, too_many_events_are_refused)
{
	struct mt_frame_fused *fused;
	const uint8_t *frame;
	size_t len;

	cr_assert(!mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &fused));
	cr_expect_eq(mt_frame_fused_frame(fused, events, MT_BATCH_EVENTS + 1, &frame, &len),
		     -EINVAL);
	mt_frame_fused_free(fused);
}

Test(fused, unknown_types_are_refused_and_harm_nothing)
{
	static const uint8_t types[] = { MT_EVENT_NONE, MT_EVENT_TYPES, 255 };

	for (size_t i = 0; i < sizeof(types); i++) {
		heap_events(100, 0);
		events[50].type = types[i];
		check(100);
		heap_events(100, 0);
		check(100);
	}
}

/* The edges of every form of an integer. */
static const uint64_t edges[] = {
	0,	    1,		31,	    32,		 127,	     128,
	255,	    256,	257,	    32767,	 32768,	     65535,
	65536,	    1u << 24,	0x7fffffff, 0x80000000u, 0xffffffff, 1ull << 32,
	1ull << 40, 1ull << 47, 1ull << 56, INT64_MAX,	 1ull << 63, UINT64_MAX,
};
enum { EDGES = sizeof(edges) / sizeof(edges[0]) };

static const struct mt_mapping short_mapping = { .path = "/usr/lib/libc.so.6",
						 .path_len = 18,
						 .len = 4096 };

/* Every field by itself over all widths, to and from each of them. */
Test(fused, every_kind_with_every_width)
{
	for (uint8_t type = MT_EVENT_MALLOC; type < MT_EVENT_TYPES; type++) {
		struct mt_mapping mappings[EDGES];
		size_t n = 0;

		if (type == MT_EVENT_STACK)
			continue;
		for (size_t field = 0; field < 6; field++) {
			for (size_t i = 0; i < 2 * EDGES; i++) {
				/* Up in steps of one, then down in steps of five. */
				uint64_t v = edges[i < EDGES ? i : i * 5 % EDGES];
				struct mt_event e = malloc_event(n);

				e.type = type;
				e.size = 500;
				e.flags = (uint8_t)(i % 2);
				e.timestamp_ns = field == 0 ? v : e.timestamp_ns;
				e.addr = field == 1 ? v : e.addr;
				e.size = field == 2 ? v : e.size;
				e.aux = field == 3 ? v : 0x7f0012340000u;
				e.stack_hash = field == 4 ? v : i % 3;
				e.member = field == 5 ? (int32_t)v : 1;
				if (type == MT_EVENT_MAPPING) {
					mappings[i % EDGES] = short_mapping;
					mappings[i % EDGES].ino = edges[i % EDGES];
					mappings[i % EDGES].dev = edges[(i + field) % EDGES];
					e.mapping = &mappings[i % EDGES];
				}
				events[n++] = e;
			}
		}
		check(n);
	}
	cr_expect_eq(handed_on(), 0);
}

Test(fused, ids_of_all_widths_and_signs)
{
	static const int32_t ids[] = { 0,     1,	 127,	 128,	 255,	 256,	   65535,
				       65536, INT32_MAX, -1,	 -31,	 -32,	 -33,	   -127,
				       -128,  -129,	 -32767, -32768, -32769, INT32_MIN };
	size_t count = sizeof(ids) / sizeof(ids[0]), n = 0;

	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < count * count; i++) {
			events[n] = malloc_event(n);
			events[n].pid = ids[i / count];
			events[n].tid = ids[i % count];
			n++;
		}
	}
	check(n);
	cr_expect_eq(handed_on(), 0);
}

Test(fused, realloc_with_and_without_each_option)
{
	for (size_t i = 0; i < 4000; i++) {
		struct mt_event *e = &events[i];

		*e = malloc_event(i);
		e->type = MT_EVENT_REALLOC;
		/* All orders of: nothing, old_addr, stack_hash, both; old_addr also NULL. */
		e->flags = (uint8_t)(i >> (i / 16 % 4) & MT_EVENT_HAS_OLD);
		e->aux = i % 7 ? 0x7f0012340000u + i * 16 : 0;
		e->stack_hash = i * 5 / 3 % 4 < 2 ? 0 : 0x123456789abcdef0u + i % 3;
	}
	check(4000);
	cr_expect_eq(handed_on(), 0);
}

Test(fused, equal_events_are_one_run)
{
	for (size_t i = 0; i < MT_BATCH_EVENTS; i++)
		events[i] = malloc_event(0);
	check(MT_BATCH_EVENTS);
	cr_expect_eq(handed_on(), 0);
	struct mt_buf frame = frame_of(MT_BATCH_EVENTS);
	/* 4 MB of content: a head and a sequence or two for each block. */
	cr_expect_lt(frame.len, 2000, "%zu bytes", frame.len);
	mt_buf_fini(&frame);
}

/* Every match is from as far back as the one before, across events and blocks. */
Test(fused, periodic_streams)
{
	for (size_t period = 1; period <= 70; period += period < 8 ? 1 : 13) {
		for (size_t i = 0; i < 5000; i++) {
			events[i] = malloc_event(i % period);
			events[i].type =
				(uint8_t)(i % period % 2 ? MT_EVENT_FREE : MT_EVENT_MALLOC);
			/* From time to time a field at the begin, middle or end differs. */
			if (i % 97 == 0)
				events[i].timestamp_ns += i;
			if (i % 101 == 0)
				events[i].addr += i;
			if (i % 103 == 0)
				events[i].size += i;
		}
		check(5000);
	}
}

Test(fused, nothing_is_alike)
{
	uint64_t state = 5;

	random_fill(&state, events, MT_BATCH_EVENTS);
	check(MT_BATCH_EVENTS);
	check(1000);
	check(1);
}

Test(fused, more_threads_than_are_numbered)
{
	for (size_t i = 0; i < 40000; i++) {
		events[i] = malloc_event(i);
		events[i].tid = (int32_t)(i * 2654435761u % 20000);
	}
	check(40000);
	cr_expect_eq(handed_on(), 0);
}

Test(fused, paths_of_all_lengths)
{
	static const uint32_t lengths[] = { 0,	 1,    31,   32,   33,	  255,	 256,
					    257, 4095, 4096, 5461, 16000, 16100, 16200 };
	static struct mt_mapping mappings[2][sizeof(lengths) / sizeof(lengths[0])];
	size_t count = sizeof(lengths) / sizeof(lengths[0]);
	static char path[2][70000];

	memset(path[0], 'p', sizeof(path[0]));
	for (size_t i = 0; i < sizeof(path[1]); i++)
		path[1][i] = (char)(i * 37);
	for (size_t i = 0; i < count * 20; i++) {
		struct mt_mapping *m = &mappings[i / count % 2][i % count];

		*m = short_mapping;
		m->path = path[i / count % 2];
		m->path_len = lengths[i % count] / (i / count % 2 ? 3 : 1);
		events[i] = malloc_event(i);
		events[i].type = MT_EVENT_MAPPING;
		events[i].mapping = m;
	}
	check(count * 20);
	cr_expect_eq(handed_on(), 0);
	mappings[0][3].path_len = 20000;
	check(count);
	cr_expect_eq(handed_on(), 1, "an event above 16 KiB is not for this writer");
	mappings[0][3].path_len = sizeof(path[0]);
	check(count);
	cr_expect_eq(handed_on(), 2);
}

Test(fused, stacks_are_handed_on)
{
	static const struct mt_stack stack = { .hash = 9, .sp = 1000 };

	heap_events(1000, 16);
	events[999].type = MT_EVENT_STACK;
	events[999].stack = &stack;
	check(1000);
	cr_expect_eq(handed_on(), 1);
	check(999);
	cr_expect_eq(handed_on(), 1);
}

/* An event whose like is at a distance to the byte: paths fill the content between. */
Test(fused, window_ends_where_it_ends)
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
	for (int over = -3; over <= 3; over++) {
		events[0] = malloc_event(0);
		for (n = 1; n < 34; n++) {
			events[n] = malloc_event(n);
			events[n].tid = 302;
			events[n].type = MT_EVENT_MAPPING;
			events[n].mapping = n == 33 ? &last : &fill;
		}
		/* The content up to here becomes the window's size and a little. */
		last.path_len = 9000;
		cr_assert(!mt_frame_enc_serialize(enc, events, n, &content, &len));
		rest = (size_t)((int)MT_FUSED_WINDOW + over) - len;
		last.path_len += (uint32_t)rest;
		cr_assert_leq(last.path_len, sizeof(path));
		events[n++] = malloc_event(1);
		check(n);
		/* And the same from another thread, which goes byte by byte. */
		events[n - 1].tid = 303;
		check(n);
	}
	cr_expect_eq(handed_on(), 0);
	mt_frame_enc_free(enc);
}

Test(fused, likes_beyond_the_window)
{
	for (size_t i = 0; i < 60000; i++) {
		events[i] = malloc_event(i);
		/* A thread that comes once in 15,000 events, a megabyte of content. */
		events[i].tid = i % 15000 ? 301 : 999;
	}
	check(60000);
	cr_expect_eq(handed_on(), 0);
}

/* Bytes that match nothing, amid a frame that does: whole blocks of them. */
Test(fused, literal_blocks_among_others)
{
	static struct mt_mapping mappings[60];
	static char path[60][5000];
	uint64_t state = 3;

	heap_events(20000, 0);
	for (size_t i = 0; i < 60; i++) {
		for (size_t j = 0; j < sizeof(path[i]); j++)
			path[i][j] = (char)(fused_rnd(&state) & 0x7f);
		mappings[i] = short_mapping;
		mappings[i].path = path[i];
		mappings[i].path_len = sizeof(path[i]);
		events[5000 + i].type = MT_EVENT_MAPPING;
		events[5000 + i].mapping = &mappings[i];
	}
	check(20000);
	cr_expect_eq(handed_on(), 0);
	/* At the very begin they are too much. */
	memmove(events, events + 5000, 15000 * sizeof(events[0]));
	check(15000);
	cr_expect_eq(handed_on(), 1);
}

/* Tables come from the first blocks; what only comes later has its code too. */
Test(fused, late_blocks_take_codes_that_early_ones_did_not_have)
{
	static struct mt_mapping mapping;
	static char path[9000];
	uint64_t state = 11;

	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = (char)(fused_rnd(&state) & 0x7f);
	mapping = short_mapping;
	mapping.path = path;
	for (size_t i = 0; i < 30000; i++)
		events[i] = malloc_event(i);
	for (size_t i = 8000; i < 30000; i += 1500) {
		/* Long literals, then matches of all lengths. */
		events[i].type = MT_EVENT_MAPPING;
		events[i].mapping = &mapping;
		mapping.path_len = sizeof(path);
		for (size_t j = 1; j < i / 40; j++)
			events[i + j] = events[i - 1];
	}
	check(30000);
	cr_expect_eq(handed_on(), 0);
}

Test(fused, frames_depend_on_their_events_only)
{
	struct mt_frame_fused *fused;
	struct mt_buf fresh;
	const uint8_t *frame;
	size_t len;

	cr_assert(!mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &fused));
	heap_events(MT_BATCH_EVENTS, 256);
	cr_assert(!mt_frame_fused_frame(fused, events, MT_BATCH_EVENTS, &frame, &len));
	events[7].type = MT_EVENT_NONE;
	cr_assert_eq(mt_frame_fused_frame(fused, events, 5000, &frame, &len), -EINVAL);
	heap_events(9000, 16);
	cr_assert(!mt_frame_fused_frame(fused, events, 9000, &frame, &len));
	fresh = frame_of(9000);
	cr_assert_eq(fresh.len, len);
	cr_expect_arr_eq(fresh.data, frame, len);
	mt_buf_fini(&fresh);
	mt_frame_fused_free(fused);
}

/* Decompresses in small steps; returns how much came before the input was at its end. */
static size_t stream(const struct mt_buf *frame, size_t in_step, uint8_t *content, size_t room,
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

Test(fused, streams_through_small_buffers)
{
	static const size_t steps[][2] = {
		{ 1, 100 }, { 100, 7 }, { 777, 1000 }, { 131075, 131072 }
	};
	struct mt_frame_enc *enc;
	const uint8_t *want;
	struct mt_buf frame;
	uint8_t *content;
	size_t len;

	heap_events(20000, 16);
	frame = frame_of(20000);
	cr_assert(!mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &enc));
	cr_assert(!mt_frame_enc_serialize(enc, events, 20000, &want, &len));
	content = malloc(len + 1);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		size_t got = stream(&frame, steps[i][0], content, len + 1, steps[i][1]);

		cr_assert_eq(got, len);
		cr_assert_arr_eq(content, want, len);
	}
	free(content);
	mt_buf_fini(&frame);
	mt_frame_enc_free(enc);
}

/* What a cut file still gives: blocks are within the limit and end between events. */
Test(fused, blocks_end_between_events)
{
	struct mt_frame_dec *dec = mt_frame_dec_new();
	size_t at = 10, blocks = 0, seen = 0;
	struct mt_decoded decoded;
	struct mt_buf frame;
	uint8_t *content = malloc(8 << 20);

	heap_events(MT_BATCH_EVENTS, 16);
	frame = frame_of(MT_BATCH_EVENTS);
	while (at < frame.len) {
		uint32_t head = frame.data[at] | (uint32_t)frame.data[at + 1] << 8 |
				(uint32_t)frame.data[at + 2] << 16;
		struct mt_buf part = { frame.data, at + 3 + (head >> 3), 0 };
		size_t got = stream(&part, part.len, content, 8 << 20, 8 << 20);

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
Test(fused, zstd_program_takes_the_frames)
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
		heap_events(n, n % 2 ? 0 : 256);
		cr_assert(!mt_frame_fused_frame(fused, events, n, &frame, &len));
		cr_assert_eq(write(fd, frame, len), (ssize_t)len);
	}
	snprintf(command, sizeof(command), "zstd -t -q %s", path);
	cr_expect_eq(system(command), 0);
	close(fd);
	unlink(path);
	mt_frame_fused_free(fused);
}

Test(fused, bad_levels_are_refused)
{
	struct mt_frame_fused *fused;

	cr_expect_eq(mt_frame_fused_new(0, &fused), -EINVAL);
	cr_expect_eq(mt_frame_fused_new(1000, &fused), -EINVAL);
	mt_frame_fused_free(NULL);
}
