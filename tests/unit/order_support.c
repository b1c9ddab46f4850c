/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/unit/order_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sidecar/order_impl.h"
#include "tests/one_batch.h"

static void must(bool held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "test support: %s failed\n", what);
	abort();
}

static void keep(void *context, const struct mt_batch *batch)
{
	struct bench *bench = context;

	if (bench->count + batch->count > bench->space) {
		bench->space = 2 * (bench->count + batch->count);
		bench->events = realloc(bench->events, bench->space * sizeof(*bench->events));
		must(bench->events != NULL, "realloc");
	}
	if (batch->count != 0) /* there may be no array yet */
		memcpy(bench->events + bench->count, batch->events,
		       batch->count * sizeof(*bench->events));
	bench->count += batch->count;
}

static struct mt_encoder encoder = { .submitted = keep };

static int give_kernel_events(void *context)
{
	struct bench *bench = context;
	unsigned count = bench->kernel_count;

	bench->kernel_count = 0;
	for (unsigned i = 0; i < count; i++)
		mt_order_kernel_event(bench->order, &bench->kernel[i]);
	return (int)count;
}

void bench_open(struct bench *bench, const struct bench_options *options)
{
	struct mt_order_options order = {
		.encoder = &encoder,
		.counter = MT_COUNTER_MONOTONIC,
		.kernel_events = options->kernel_events,
		.max_liveness_bytes = options->max_liveness_bytes ? options->max_liveness_bytes
								  : UINT64_C(1) << 30,
		.max_chunk_bytes = UINT64_C(256) << 20,
		.flush_ns = UINT64_C(1000000000),
		.drain = give_kernel_events,
		.drain_context = bench,
	};

	memset(bench, 0, sizeof(*bench));
	encoder.context = bench;
	encoder.batch = mt_batch_new();
	must(encoder.batch != NULL, "mt_batch_new");
	must(mt_order_new(&order, &bench->order) == 0, "mt_order_new");
	/* Nobody has the numbers of our processes: /proc must not be asked. */
	bench->order->checked_ns = UINT64_MAX / 2;
	bench->base = mt_clock_monotonic_ns();
}

void bench_close(struct bench *bench)
{
	mt_order_free(bench->order);
	mt_batch_free(encoder.batch);
	free(bench->events);
}

static uint64_t clock_ns(void)
{
	return mt_clock_monotonic_ns();
}

void bench_image(struct bench *bench, struct bench_image *image, int32_t pid, uint32_t hello_flags)
{
	struct mt_shm_options options = {
		.pool_bytes = 1 << 20,
		.max_bytes = 64 << 20,
		.max_map_bytes = UINT64_MAX,
		.counter = MT_COUNTER_MONOTONIC,
		.max_wait_ms = 1000,
	};
	struct mt_proc_birth birth = { .pid = pid, .tid = pid, .stamp = bench->base };
	struct mt_hello hello = { .pid = pid, .flags = hello_flags, .time_ns = bench->base };
	struct mt_shm shm;
	void *map;

	must(mt_shm_create(&options, &shm) == 0, "mt_shm_create");
	map = mmap(NULL, shm.layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm.fd, 0);
	must(map != MAP_FAILED, "mmap");
	must(mt_producer_open(map, shm.layout.total_bytes, &image->producer) == 0,
	     "mt_producer_open");
	image->producer.now_ns = clock_ns;
	must(mt_order_add_image(bench->order, &shm, pid, &hello) == 0, "mt_order_add_image");
	image->proc = mt_producer_claim_proc(&image->producer, &birth);
	must(image->proc != 0, "mt_producer_claim_proc");
}

struct mt_writer bench_thread(const struct bench_image *image, uint32_t proc, int32_t tid)
{
	struct mt_writer writer;

	must(mt_writer_claim(&image->producer, &writer, proc, tid, (uint64_t)tid << 12, 1),
	     "mt_writer_claim");
	return writer;
}

void bench_put(struct bench *bench, const struct bench_image *image, struct mt_writer *writer,
	       uint64_t at, enum mt_rec_kind kind, uint64_t addr, uint64_t size)
{
	if (writer->next == writer->end)
		must(mt_writer_turn_over(&image->producer, writer) == 0, "mt_writer_turn_over");
	mt_writer_put(writer, bench->base + at, addr, size, kind);
}

void bench_run(struct bench *bench)
{
	for (int idle = 0; idle < 3;)
		idle = mt_order_round(bench->order) == 0 ? idle + 1 : 0;
}

struct mt_order_stats bench_finish(struct bench *bench)
{
	struct mt_order_stats stats;

	mt_order_finish(bench->order);
	mt_order_stats(bench->order, &stats);
	return stats;
}

const char *bench_text(const struct bench *bench)
{
	static const char letters[MT_EVENT_TYPES] = {
		[MT_EVENT_MALLOC] = 'm',  [MT_EVENT_CALLOC] = 'c', [MT_EVENT_ALIGNED_ALLOC] = 'a',
		[MT_EVENT_REALLOC] = 'r', [MT_EVENT_FREE] = 'f',   [MT_EVENT_FORK] = '+',
		[MT_EVENT_EXEC] = 'x',	  [MT_EVENT_EXIT] = '-',   [MT_EVENT_MAPPING] = 'M',
		[MT_EVENT_MMAP] = 'P',	  [MT_EVENT_MUNMAP] = 'U',
	};
	static char text[65536];
	size_t at = 0;

	text[0] = 0;
	for (size_t i = 0; i < bench->count && at < sizeof(text) - 64; i++) {
		const struct mt_event *event = &bench->events[i];
		bool is_process = event->type >= MT_EVENT_FORK && event->type <= MT_EVENT_EXIT;

		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%c", i ? " " : "",
				       letters[event->type]);
		if (event->type == MT_EVENT_REALLOC && event->flags & MT_EVENT_HAS_OLD)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%llx>",
					       (unsigned long long)event->aux);
		if (is_process)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%d",
					       event->pid - BENCH_PID);
		else
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%llx",
					       (unsigned long long)event->addr);
	}
	return text;
}

/* A live block of a process; a plain list is enough for the sizes of unit tests. */
struct block {
	int32_t pid;
	bool inherited;
	uint64_t addr;
};

struct live {
	struct block *blocks;
	size_t count, space;
};

static void add_block(struct live *live, int32_t pid, uint64_t addr, bool inherited)
{
	if (live->count == live->space) {
		live->space = live->space ? 2 * live->space : 1024;
		live->blocks = realloc(live->blocks, live->space * sizeof(*live->blocks));
		must(live->blocks != NULL, "realloc");
	}
	live->blocks[live->count++] = (struct block){ pid, inherited, addr };
}

static struct block *find_block(const struct live *live, int32_t pid, uint64_t addr)
{
	for (size_t i = live->count; i-- > 0;)
		if (live->blocks[i].pid == pid && live->blocks[i].addr == addr)
			return &live->blocks[i];
	return NULL;
}

static unsigned remove_block(struct live *live, int32_t pid, uint64_t addr)
{
	struct block *block = find_block(live, pid, addr);

	if (!block)
		return 1;
	*block = live->blocks[--live->count];
	return 0;
}

static unsigned allocate(struct live *live, int32_t pid, uint64_t addr)
{
	struct block *block = find_block(live, pid, addr);

	if (!block) {
		add_block(live, pid, addr, false);
		return 0;
	}
	if (block->inherited) {
		block->inherited = false;
		return 0;
	}
	return 1;
}

unsigned bench_contradictions(const struct bench *bench)
{
	struct live live = { 0 };
	unsigned wrong = 0;
	uint64_t last_ns = 0;

	for (size_t i = 0; i < bench->count; i++) {
		const struct mt_event *event = &bench->events[i];
		size_t before = live.count;

		wrong += event->timestamp_ns < last_ns;
		last_ns = event->timestamp_ns;
		switch (event->type) {
		case MT_EVENT_REALLOC:
			if (event->flags & MT_EVENT_HAS_OLD && event->aux != 0)
				wrong += remove_block(&live, event->pid, event->aux);
			wrong += allocate(&live, event->pid, event->addr);
			break;
		case MT_EVENT_MALLOC:
		case MT_EVENT_CALLOC:
		case MT_EVENT_ALIGNED_ALLOC:
			wrong += allocate(&live, event->pid, event->addr);
			break;
		case MT_EVENT_FREE:
			wrong += remove_block(&live, event->pid, event->addr);
			break;
		case MT_EVENT_FORK:
			for (size_t at = 0; at < before; at++)
				if (live.blocks[at].pid == (int32_t)event->aux)
					add_block(&live, event->pid, live.blocks[at].addr, true);
			break;
		case MT_EVENT_EXEC:
		case MT_EVENT_EXIT:
			for (size_t at = live.count; at-- > 0;)
				if (live.blocks[at].pid == event->pid)
					live.blocks[at] = live.blocks[--live.count];
			break;
		}
	}
	free(live.blocks);
	return wrong;
}
