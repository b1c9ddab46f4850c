/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the order engine costs an event: streams of 1, 2 and 8 threads are written into a segment
 * beforehand, then merged, checked against the liveness bits and put into batches that go nowhere.
 * One JSON line a case: processor time, the median of the repeats and their spread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/chunk_producer.h"
#include "common/clock.h"
#include "sidecar/order.h"
#include "tests/one_batch.h"

#define EVENTS	2000000u
#define REPEATS 7
#define THREADS 8

static void pass_over(void *context, const struct mt_batch *batch)
{
	(void)context;
	(void)batch;
}

struct merge_case {
	const char *name;
	unsigned threads;
	unsigned run; /* events of one thread in a row, 0: by chance */
	uint32_t blocks;
};

static const struct merge_case cases[] = {
	{ "1 thread, 4 k blocks", 1, 1, 4096 },
	{ "1 thread, 1 M blocks", 1, 1, 1u << 20 },
	{ "2 threads, runs of 100", 2, 100, 4096 },
	{ "2 threads, at random", 2, 0, 4096 },
	{ "8 threads, runs of 100", 8, 100, 4096 },
	{ "8 threads, at random", 8, 0, 4096 },
	{ "8 threads, at random, 1 M blocks", 8, 0, 1u << 20 },
};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void must(bool held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "bench/merge: %s failed\n", what);
	exit(1);
}

/* Each event takes a block at random and flips it: allocated when free, freed when allocated. */
static void write_streams(const struct mt_producer *producer, const struct merge_case *merge_case)
{
	struct mt_proc_birth birth = { .pid = 1, .tid = 1, .stamp = 1 };
	uint32_t proc = mt_producer_claim_proc(producer, &birth);
	struct mt_writer writers[THREADS];
	uint8_t *live = calloc(merge_case->blocks, 1);
	uint64_t state = 88172645463325252u, stamp = mt_clock_read(mt_clock_detect());
	unsigned thread = 0;

	must(live != NULL, "calloc");
	stamp -= EVENTS;
	for (unsigned i = 0; i < merge_case->threads; i++)
		must(mt_writer_claim(producer, &writers[i], proc, (int32_t)i + 1, i + 1, 1),
		     "mt_writer_claim");
	for (unsigned i = 0; i < EVENTS; i++) {
		uint32_t block = (uint32_t)(random_next(&state) >> 20) & (merge_case->blocks - 1);

		if (merge_case->run == 0)
			thread = (unsigned)(random_next(&state) >> 33) % merge_case->threads;
		else if (i % merge_case->run == 0)
			thread = (thread + 1) % merge_case->threads;
		if (writers[thread].next == writers[thread].end)
			must(mt_writer_turn_over(producer, &writers[thread]) == 0,
			     "mt_writer_turn_over");
		mt_writer_put(&writers[thread], stamp + i, 0x7f0000000000 + (uint64_t)block * 64,
			      live[block] ? 0 : 48, live[block] ? MT_REC_FREE : MT_REC_MALLOC);
		live[block] = !live[block];
	}
	free(live);
}

/* Of this thread: other programs on the machine count less. */
static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double run_once(const struct merge_case *merge_case)
{
	struct mt_shm_options shm_options = {
		.pool_bytes = 8 << 20,
		.max_bytes = 128 << 20,
		.max_map_bytes = UINT64_MAX,
		.counter = mt_clock_detect(),
		.max_wait_ms = 1000,
	};
	struct mt_encoder encoder = { .batch = mt_batch_new(), .submitted = pass_over };
	struct mt_order_options options = {
		.encoder = &encoder,
		.counter = mt_clock_detect(),
		.max_liveness_bytes = UINT64_C(1) << 30,
		.max_chunk_bytes = UINT64_C(1) << 30,
		.flush_ns = UINT64_C(1000000000),
	};
	struct mt_hello hello = { .pid = 1, .time_ns = 1 };
	struct mt_producer producer;
	struct mt_order *order = NULL;
	struct mt_order_stats stats;
	struct mt_shm shm;
	uint64_t start, total, sum = 0;
	void *map;

	must(mt_shm_create(&shm_options, &shm) == 0, "mt_shm_create");
	shm.header->limit = shm.layout.chunk_count;
	total = shm.layout.total_bytes;
	map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, shm.fd, 0);
	must(map != MAP_FAILED, "mmap");
	must(mt_producer_open(map, total, &producer) == 0, "mt_producer_open");
	producer.now_ns = mt_clock_monotonic_ns;
	write_streams(&producer, merge_case);
	/* A pool that goes round is mapped already: the faults of its first use are not the
	 * merge's. */
	for (uint64_t at = 0; at < total; at += MT_SHM_ALIGN)
		sum += (uint64_t)mt_load_relaxed((const char *)shm.header + at);
	must(encoder.batch && mt_order_new(&options, &order) == 0, "mt_order_new");
	must(mt_order_add_image(order, &shm, 1, &hello) == 0, "mt_order_add_image");
	/* Notes everything, and opens the gate. */
	mt_order_round(order);
	start = cpu_ns();
	mt_order_stats(order, &stats);
	while (stats.events < EVENTS + 1) {
		mt_order_round(order);
		mt_order_stats(order, &stats);
	}
	start = cpu_ns() - start;
	must(stats.parked + stats.unknown_frees + stats.live_allocs == 0, "the order");
	mt_order_free(order);
	mt_batch_free(encoder.batch);
	munmap(map, total);
	must(sum != 1, "reading");
	return (double)start / EVENTS;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double ns[REPEATS];

		for (int repeat = 0; repeat < REPEATS; repeat++)
			ns[repeat] = run_once(&cases[i]);
		qsort(ns, REPEATS, sizeof(ns[0]), by_value);
		printf("{\"bench\":\"merge\",\"case\":\"%s\",\"ns_per_event\":%.2f,\"min\":%.2f,"
		       "\"max\":%.2f}\n",
		       cases[i].name, ns[REPEATS / 2], ns[0], ns[REPEATS - 1]);
		fflush(stdout);
	}
	return 0;
}
