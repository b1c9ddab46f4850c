/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The fused writer: any zstd decoder gives from its frames what the serializer
 * makes of the fused_events, byte for byte. fused_check_frame() holds this for a frame, by
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
#include "common/fused_plan.h"
#include "tests/unit/codec_support.h"
#include "tests/unit/fused_unit.h"

TestSuite(fused, .init = fused_begin, .fini = fused_end);

static void golden(const char *name)
{
	struct mt_artifact_reader *reader;
	struct mt_artifact_batch batch;
	char *path = golden_path(name);
	size_t frames = 0;
	int ret;

	cr_assert(!mt_artifact_reader_open(path, &reader, NULL));
	while ((ret = mt_artifact_reader_next(reader, &batch)) == 1) {
		const char *wrong = fused_check(fused_checker_now, batch.events, batch.n);

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
	memcpy(fused_events, batch.events, batch.n * sizeof(fused_events[0]));
	frame = fused_frame_of(batch.n);
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
	fused_check_frame(0);
	cr_expect_eq(fused_handed_on(), 0);
}

Test(fused, frames_of_every_small_size)
{
	fused_heap_events(300, 16);
	for (size_t n = 1; n <= 300; n++)
		fused_check_frame(n);
}

Test(fused, largest_frames)
{
	fused_heap_events(MT_BATCH_EVENTS, 16);
	fused_check_frame(MT_BATCH_EVENTS - 1);
	fused_check_frame(MT_BATCH_EVENTS);
	cr_expect_eq(fused_handed_on(), 0);
}

Test(fused, too_many_events_are_refused)
{
	struct mt_frame_fused *fused;
	const uint8_t *frame;
	size_t len;

	cr_assert(!mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &fused));
	cr_expect_eq(mt_frame_fused_frame(fused, fused_events, MT_BATCH_EVENTS + 1, &frame, &len),
		     -EINVAL);
	mt_frame_fused_free(fused);
}

Test(fused, unknown_types_are_refused_and_harm_nothing)
{
	static const uint8_t types[] = { MT_EVENT_NONE, MT_EVENT_TYPES, 255 };

	for (size_t i = 0; i < sizeof(types); i++) {
		fused_heap_events(100, 0);
		fused_events[50].type = types[i];
		fused_check_frame(100);
		fused_heap_events(100, 0);
		fused_check_frame(100);
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
				struct mt_event e = fused_malloc_event(n);

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
				fused_events[n++] = e;
			}
		}
		fused_check_frame(n);
	}
	cr_expect_eq(fused_handed_on(), 0);
}

Test(fused, ids_of_all_widths_and_signs)
{
	static const int32_t ids[] = { 0,     1,	 127,	 128,	 255,	 256,	   65535,
				       65536, INT32_MAX, -1,	 -31,	 -32,	 -33,	   -127,
				       -128,  -129,	 -32767, -32768, -32769, INT32_MIN };
	size_t count = sizeof(ids) / sizeof(ids[0]), n = 0;

	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < count * count; i++) {
			fused_events[n] = fused_malloc_event(n);
			fused_events[n].pid = ids[i / count];
			fused_events[n].tid = ids[i % count];
			n++;
		}
	}
	fused_check_frame(n);
	cr_expect_eq(fused_handed_on(), 0);
}

Test(fused, realloc_with_and_without_each_option)
{
	for (size_t i = 0; i < 4000; i++) {
		struct mt_event *e = &fused_events[i];

		*e = fused_malloc_event(i);
		e->type = MT_EVENT_REALLOC;
		/* All orders of: nothing, old_addr, stack_hash, both; old_addr also NULL. */
		e->flags = (uint8_t)(i >> (i / 16 % 4) & MT_EVENT_HAS_OLD);
		e->aux = i % 7 ? 0x7f0012340000u + i * 16 : 0;
		e->stack_hash = i * 5 / 3 % 4 < 2 ? 0 : 0x123456789abcdef0u + i % 3;
	}
	fused_check_frame(4000);
	cr_expect_eq(fused_handed_on(), 0);
}

Test(fused, equal_events_are_one_run)
{
	for (size_t i = 0; i < MT_BATCH_EVENTS; i++)
		fused_events[i] = fused_malloc_event(0);
	fused_check_frame(MT_BATCH_EVENTS);
	cr_expect_eq(fused_handed_on(), 0);
	struct mt_buf frame = fused_frame_of(MT_BATCH_EVENTS);
	/* 4 MB of content: a head and a sequence or two for each block. */
	cr_expect_lt(frame.len, 2000, "%zu bytes", frame.len);
	mt_buf_fini(&frame);
}

/* Every match is from as far back as the one before, across events and blocks. */
Test(fused, periodic_streams)
{
	for (size_t period = 1; period <= 70; period += period < 8 ? 1 : 13) {
		for (size_t i = 0; i < 5000; i++) {
			fused_events[i] = fused_malloc_event(i % period);
			fused_events[i].type =
				(uint8_t)(i % period % 2 ? MT_EVENT_FREE : MT_EVENT_MALLOC);
			/* From time to time a field at the begin, middle or end differs. */
			if (i % 97 == 0)
				fused_events[i].timestamp_ns += i;
			if (i % 101 == 0)
				fused_events[i].addr += i;
			if (i % 103 == 0)
				fused_events[i].size += i;
		}
		fused_check_frame(5000);
	}
}

Test(fused, nothing_is_alike)
{
	uint64_t state = 5;

	random_fill(&state, fused_events, MT_BATCH_EVENTS);
	fused_check_frame(MT_BATCH_EVENTS);
	fused_check_frame(1000);
	fused_check_frame(1);
}

/* Numbers of every width in every field, each event of another thread: none has its like. */
Test(fused, random_numbers_are_laid_over_each_other)
{
	static const uint8_t types[] = { MT_EVENT_MALLOC, MT_EVENT_REALLOC, MT_EVENT_FREE,
					 MT_EVENT_EXEC, MT_EVENT_MUNMAP };
	struct mt_buf frame;
	uint64_t state = 9;

	for (size_t i = 0; i < MT_BATCH_EVENTS; i++) {
		struct mt_event *e = &fused_events[i];

		*e = (struct mt_event){ .type = types[fused_rnd(&state) % 5] };
		e->pid = (int32_t)((int64_t)fused_rnd(&state) >> (32 + fused_rnd(&state) % 32));
		e->tid = (int32_t)((int64_t)fused_rnd(&state) >> (32 + fused_rnd(&state) % 32));
		e->timestamp_ns = fused_rnd(&state) >> fused_rnd(&state) % 64;
		e->addr = fused_rnd(&state) >> fused_rnd(&state) % 64;
		e->size = fused_rnd(&state) >> fused_rnd(&state) % 64;
		e->stack_hash = fused_rnd(&state) % 2 ? fused_rnd(&state) >> 40 : 0;
		e->flags = (uint8_t)(fused_rnd(&state) % 2 ? MT_EVENT_HAS_OLD : 0);
		e->aux = fused_rnd(&state) >> fused_rnd(&state) % 64;
	}
	fused_check_frame(MT_BATCH_EVENTS);
	cr_expect_eq(fused_handed_on(), 0);
	cr_expect_lt(fused_checker_stats(fused_checker_now)->events_slow, 300);
	frame = fused_frame_of(MT_BATCH_EVENTS);
	cr_expect_lt(frame.len, 40 * (size_t)MT_BATCH_EVENTS, "%zu bytes", frame.len);
	mt_buf_fini(&frame);
}

Test(fused, more_threads_than_are_numbered)
{
	for (size_t i = 0; i < 40000; i++) {
		fused_events[i] = fused_malloc_event(i);
		fused_events[i].tid = (int32_t)(i * 2654435761u % 20000);
	}
	fused_check_frame(40000);
	cr_expect_eq(fused_handed_on(), 0);
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
		fused_events[i] = fused_malloc_event(i);
		fused_events[i].type = MT_EVENT_MAPPING;
		fused_events[i].mapping = m;
	}
	fused_check_frame(count * 20);
	cr_expect_eq(fused_handed_on(), 0);
	mappings[0][3].path_len = 20000;
	fused_check_frame(count);
	cr_expect_eq(fused_handed_on(), 1, "an event above 16 KiB is not for this writer");
	mappings[0][3].path_len = sizeof(path[0]);
	fused_check_frame(count);
	cr_expect_eq(fused_handed_on(), 2);
}

Test(fused, stacks_are_handed_on)
{
	static const struct mt_stack stack = { .hash = 9, .sp = 1000 };

	fused_heap_events(1000, 16);
	fused_events[999].type = MT_EVENT_STACK;
	fused_events[999].stack = &stack;
	fused_check_frame(1000);
	cr_expect_eq(fused_handed_on(), 1);
	fused_check_frame(999);
	cr_expect_eq(fused_handed_on(), 1);
}

/* Bytes that match nothing, amid a frame that does: whole blocks of them. */
Test(fused, literal_blocks_among_others)
{
	static struct mt_mapping mappings[60];
	static char path[60][5000];
	uint64_t state = 3;

	fused_heap_events(20000, 0);
	for (size_t i = 0; i < 60; i++) {
		for (size_t j = 0; j < sizeof(path[i]); j++)
			path[i][j] = (char)(fused_rnd(&state) & 0x7f);
		mappings[i] = short_mapping;
		mappings[i].path = path[i];
		mappings[i].path_len = sizeof(path[i]);
		fused_events[5000 + i].type = MT_EVENT_MAPPING;
		fused_events[5000 + i].mapping = &mappings[i];
	}
	fused_check_frame(20000);
	cr_expect_eq(fused_handed_on(), 0);
	/* At the very begin they are too much. */
	memmove(fused_events, fused_events + 5000, 15000 * sizeof(fused_events[0]));
	fused_check_frame(15000);
	cr_expect_eq(fused_handed_on(), 1);
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
		fused_events[i] = fused_malloc_event(i);
	for (size_t i = 8000; i < 30000; i += 1500) {
		/* Long literals, then matches of all lengths. */
		fused_events[i].type = MT_EVENT_MAPPING;
		fused_events[i].mapping = &mapping;
		mapping.path_len = sizeof(path);
		for (size_t j = 1; j < i / 40; j++)
			fused_events[i + j] = fused_events[i - 1];
	}
	fused_check_frame(30000);
	cr_expect_eq(fused_handed_on(), 0);
}

Test(fused, frames_depend_on_their_events_only)
{
	struct mt_frame_fused *fused;
	struct mt_buf fresh;
	const uint8_t *frame;
	size_t len;

	cr_assert(!mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &fused));
	fused_heap_events(MT_BATCH_EVENTS, 256);
	cr_assert(!mt_frame_fused_frame(fused, fused_events, MT_BATCH_EVENTS, &frame, &len));
	fused_events[7].type = MT_EVENT_NONE;
	cr_assert_eq(mt_frame_fused_frame(fused, fused_events, 5000, &frame, &len), -EINVAL);
	fused_heap_events(9000, 16);
	cr_assert(!mt_frame_fused_frame(fused, fused_events, 9000, &frame, &len));
	fresh = fused_frame_of(9000);
	cr_assert_eq(fresh.len, len);
	cr_expect_arr_eq(fresh.data, frame, len);
	mt_buf_fini(&fresh);
	mt_frame_fused_free(fused);
}

Test(fused, bad_levels_are_refused)
{
	struct mt_frame_fused *fused;

	cr_expect_eq(mt_frame_fused_new(0, &fused), -EINVAL);
	cr_expect_eq(mt_frame_fused_new(1000, &fused), -EINVAL);
	mt_frame_fused_free(NULL);
}
