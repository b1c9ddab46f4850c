/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What orders events: the clock with pairs of readings that the fuzzer makes up (time never falls,
 * whatever the counter does), and the kernel's records, from any source, at any time and of any
 * kind, put together into events (paths are whole, numbers are the records').
 */
#include "common/clock.h"
#include "sidecar/kernel_merge.h"
#include "tests/fuzz/fuzz_input.h"

#define RECORDS_MAX 512
#define READINGS    64

static void must_rise(struct mt_clock *clock, struct fuzz_input *in)
{
	uint64_t counter = clock->pairs[0].counter, last_ns = 0;

	/* From before the first reading on. */
	for (uint64_t part = 0; part <= 16; part++) {
		uint64_t ns = mt_clock_ns(clock, counter / 16 * part);

		fuzz_must(ns >= last_ns, "a later counter gives no earlier time");
		last_ns = ns;
	}
	for (int i = 0; i < READINGS && in->left; i++) {
		uint64_t ns = mt_clock_ns(clock, counter);

		fuzz_must(ns >= last_ns, "a later counter gives no earlier time");
		last_ns = ns;
		(void)mt_clock_counter_at(clock, ns);
		counter += fuzz_take(in, 4);
	}
}

/* Readings as a machine could give them, however odd: both clocks rise between two pairs. */
static void try_clock(struct fuzz_input *in)
{
	static struct mt_clock clock;

	memset(&clock, 0, sizeof(clock));
	clock.counter = MT_COUNTER_MONOTONIC;
	clock.count = 2 + (uint32_t)fuzz_take(in, 1) % 64;
	clock.pairs[0].counter = fuzz_take(in, 8) >> 2;
	clock.pairs[0].ns = fuzz_take(in, 8) >> 2;
	for (uint32_t i = 1; i < clock.count; i++) {
		uint64_t ticks = 1 + fuzz_take(in, 4), rate = fuzz_take(in, 2);

		/* 1/256 to 256 ns a tick; beyond it the sums would leave 64 bits. */
		clock.pairs[i].counter = clock.pairs[i - 1].counter + ticks;
		clock.pairs[i].ns = clock.pairs[i - 1].ns + 1 + ticks * rate / 256;
	}
	must_rise(&clock, in);
	/* Any value at all: no time that makes sense, but no harm. */
	(void)mt_clock_ns(&clock, fuzz_take(in, 8));
	(void)mt_clock_counter_at(&clock, fuzz_take(in, 8));
	(void)mt_clock_ticks(&clock, fuzz_take(in, 8));
}

static void on_event(void *context, const struct mt_kev *event)
{
	uint64_t *last_ns = context;
	unsigned sum = 0;

	fuzz_must(event->path || event->path_len == 0, "a path has bytes");
	for (uint32_t i = 0; i < event->path_len; i++)
		sum += (unsigned char)event->path[i];
	*last_ns = event->time_ns + sum;
}

static void push_record(struct mt_kqueue *queue, struct fuzz_input *in)
{
	unsigned kind = (unsigned)fuzz_take(in, 1);
	uint8_t numbers = (uint8_t)fuzz_take(in, 1);
	struct mt_kev event = {
		.type = (int32_t)(kind >> 3) % (MT_KEV_LOST + 1),
		.time_ns = fuzz_take(in, 1),
		.pid = 10 + (numbers & 3),
		.tid = 10 + (numbers >> 2 & 3),
		.parent_pid = 10 + (numbers >> 4 & 3),
		.parent_tid = 10 + (numbers >> 6 & 3),
		.exec_flags = (uint32_t)fuzz_take(in, 1),
	};
	size_t len = 0;

	if (kind & 0x80) {
		event.path = (const char *)fuzz_take_run(in, 64, &len);
		event.path_len = (uint32_t)len;
	}
	if (kind & 0x40)
		event.pid = (int32_t)fuzz_take(in, 4);
	mt_kqueue_push(queue, (enum mt_krecord_kind)((kind & 7) % (MT_KREC_PERF_EXIT + 1)), &event);
}

static void try_kernel(struct fuzz_input *in)
{
	unsigned how = (unsigned)fuzz_take(in, 1);
	struct mt_kmerge merge = {
		.process_from_perf = how & 1,
		.exec_maps_from_perf = how & 2,
		.later_maps_from_perf = how & 4,
		.perf_is_global = how & 8,
	};
	struct mt_kqueue queue = { 0 };
	uint64_t last_ns = 0;

	fuzz_must(mt_kmerge_follow(&merge, 10, 1 + (how >> 6)) == 0, "there is memory");
	for (int i = 0; i < RECORDS_MAX && in->left; i++) {
		size_t count;

		push_record(&queue, in);
		if (fuzz_take(in, 1) & 3)
			continue;
		mt_kqueue_sort(&queue);
		count = queue.count - (how >> 4 & 1 && queue.count ? 1 : 0);
		mt_kmerge_run(&merge, &queue, count, on_event, &last_ns);
		mt_kqueue_drop(&queue, count);
	}
	mt_kqueue_sort(&queue);
	mt_kmerge_run(&merge, &queue, queue.count, on_event, &last_ns);
	mt_kmerge_fini(&merge);
	mt_kqueue_fini(&queue);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };

	if (fuzz_take(&in, 1) & 1)
		try_clock(&in);
	else
		try_kernel(&in);
	return 0;
}
