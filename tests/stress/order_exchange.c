/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads hand blocks to each other as fast as they can and record it into a segment; the order
 * engine runs beside them. Each address has a shadow counter that its owner bumps, so every
 * allocation knows its exact place among those of its address. Checked: no contradiction, every
 * allocation in its exact place (with plain stamps: but for very few), every record written once,
 * memory bounded. Then the same with clocks that differ from thread to thread, threads that come
 * and go, and a hostile writer that changes all it can under the reader.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/chunk_producer.h"
#include "common/clock.h"
#include "sidecar/order.h"
#include "tests/one_batch.h"

#define BLOCKS	  4096u
#define MAILBOX	  64u
#define PRODUCERS 4u
#define ADDRESS	  UINT64_C(0x7f0000000000)
#define BLOCK	  64u

/* Checks what comes out. */
static struct {
	uint64_t events, contradictions, out_of_place, backwards;
	uint64_t last_ns;
	uint64_t allocations[BLOCKS];
	bool live[BLOCKS];
} checker;

static int failures;

static void must(bool held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

static void result(int number, bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", number, what);
	fflush(stdout);
	failures += !good;
}

static void allocate(uint64_t addr, uint64_t place)
{
	uint64_t block = (addr - ADDRESS) / BLOCK;

	if (block >= BLOCKS)
		return;
	checker.contradictions += checker.live[block];
	checker.out_of_place += checker.allocations[block]++ != place;
	checker.live[block] = true;
}

static void release(uint64_t addr)
{
	uint64_t block = (addr - ADDRESS) / BLOCK;

	if (block >= BLOCKS)
		return;
	checker.contradictions += !checker.live[block];
	checker.live[block] = false;
}

static void check(void *context, const struct mt_batch *batch)
{
	(void)context;
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct mt_event *event = &batch->events[i];

		checker.backwards += event->timestamp_ns < checker.last_ns;
		checker.last_ns = event->timestamp_ns;
		checker.events++;
		if (event->type == MT_EVENT_REALLOC && event->flags & MT_EVENT_HAS_OLD &&
		    event->aux != 0)
			release(event->aux);
		if (event->type == MT_EVENT_MALLOC || event->type == MT_EVENT_REALLOC)
			allocate(event->addr, event->size);
		if (event->type == MT_EVENT_FREE)
			release(event->addr);
	}
}

static struct mt_encoder encoder = { .submitted = check };

/* A simple allocator: one stack under a lock, with the shadow counters of its blocks. */
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t heap_free[BLOCKS], heap_count;
static uint64_t shadow[BLOCKS];	  /* written by the block's owner */
static uint64_t mailbox[MAILBOX]; /* block + 1, 0: empty */

static struct mt_producer producer;
static uint32_t proc;
static enum mt_counter counter;
static uint64_t to_do; /* rounds of one producer */
static bool strict;    /* stamps of allocations wait for the loads before them, as --order=strict */
static uint64_t skew_ticks; /* each thread's clock is that much behind the one before */
static uint64_t records_written;
static uint32_t running;

static uint32_t heap_take(void)
{
	uint32_t block = 0;

	pthread_mutex_lock(&heap_lock);
	must(heap_count > 0, "heap");
	block = heap_free[--heap_count];
	pthread_mutex_unlock(&heap_lock);
	return block;
}

static void heap_give(uint32_t block)
{
	pthread_mutex_lock(&heap_lock);
	heap_free[heap_count++] = block;
	pthread_mutex_unlock(&heap_lock);
}

struct thread {
	struct mt_writer writer;
	uint64_t random;
	uint64_t records;
	uint64_t behind; /* its clock, in ticks */
};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The counter is not read before what came before has its values. */
static void wait_for_loads(void)
{
#ifdef __x86_64__
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("dsb ishld\n\tisb" ::: "memory");
#endif
}

static void record(struct thread *thread, enum mt_rec_kind kind, uint32_t block, uint64_t size)
{
	uint64_t stamp;

	if (strict && (kind == MT_REC_MALLOC || kind == MT_REC_REALLOC_END))
		wait_for_loads();
	stamp = mt_clock_read(counter) - thread->behind;
	if (thread->writer.next == thread->writer.end) {
		int ret = mt_writer_turn_over(&producer, &thread->writer);

		must(ret == 0, "a chunk");
		stamp = mt_clock_read(counter) - thread->behind;
	}
	mt_writer_put(&thread->writer, stamp, ADDRESS + (uint64_t)block * BLOCK, size, kind);
	thread->records++;
}

static uint32_t do_malloc(struct thread *thread)
{
	uint32_t block = heap_take();

	record(thread, MT_REC_MALLOC, block, shadow[block]);
	shadow[block]++;
	return block;
}

static void do_free(struct thread *thread, uint32_t block)
{
	record(thread, MT_REC_FREE, block, 0);
	heap_give(block);
}

static uint32_t do_realloc(struct thread *thread, uint32_t old)
{
	uint32_t block = old;

	record(thread, MT_REC_REALLOC_BEGIN, old, 0);
	if (random_next(&thread->random) % 8 == 0) {
		record(thread, MT_REC_REALLOC_FAILED, old, 0);
		return old;
	}
	if (random_next(&thread->random) % 2) {
		block = heap_take();
		heap_give(old);
	}
	record(thread, MT_REC_REALLOC_END, block, shadow[block]);
	shadow[block]++;
	return block;
}

static void claim_thread(struct thread *thread)
{
	must(mt_writer_claim(&producer, &thread->writer, proc, (int32_t)syscall(SYS_gettid),
			     (uint64_t)(uintptr_t)pthread_self(), mt_clock_read(counter)),
	     "mt_writer_claim");
}

static void *produce(void *argument)
{
	struct thread *thread = argument;

	claim_thread(thread);
	for (uint64_t i = 0; i < to_do; i++) {
		uint64_t *letter = &mailbox[random_next(&thread->random) % MAILBOX], old;
		uint32_t block = do_malloc(thread);

		if (random_next(&thread->random) % 4 == 0)
			block = do_realloc(thread, block);
		old = mt_exchange_acq_rel(letter, (uint64_t)block + 1);
		if (old != 0)
			do_free(thread, (uint32_t)old - 1);
	}
	mt_add_relaxed(&records_written, thread->records);
	mt_sub_acq_rel(&running, 1);
	return NULL;
}

static struct mt_order *order_start(struct mt_shm *ret_shm, uint64_t pool_bytes)
{
	struct mt_shm_options shm_options = {
		.pool_bytes = pool_bytes,
		.max_bytes = 64 << 20,
		.max_map_bytes = UINT64_MAX,
		.counter = counter,
		.max_wait_ms = 60000,
	};
	struct mt_order_options options = {
		.encoder = &encoder,
		.counter = counter,
		.max_liveness_bytes = UINT64_C(64) << 20,
		.max_chunk_bytes = UINT64_C(256) << 20,
		.flush_ns = UINT64_C(1000000000),
	};
	struct mt_hello hello = { .pid = getpid(), .time_ns = mt_clock_monotonic_ns() };
	struct mt_order *order;

	memset(&checker, 0, sizeof(checker));
	encoder.batch = mt_batch_new();
	must(encoder.batch != NULL, "mt_batch_new");
	must(mt_shm_create(&shm_options, ret_shm) == 0, "mt_shm_create");
	/* The same mapping for both sides: TSan does not see through two. */
	must(mt_producer_open(ret_shm->header, ret_shm->layout.total_bytes, &producer) == 0,
	     "mt_producer_open");
	producer.now_ns = mt_clock_monotonic_ns;
	must(mt_order_new(&options, &order) == 0, "mt_order_new");
	must(mt_order_add_image(order, ret_shm, getpid(), &hello) == 0, "mt_order_add_image");
	return order;
}

static void claim_process(void)
{
	struct mt_proc_birth birth = {
		.pid = getpid(),
		.tid = getpid(),
		.stamp = mt_clock_read(counter),
	};

	proc = mt_producer_claim_proc(&producer, &birth);
	must(proc != 0, "mt_producer_claim_proc");
}

static void order_stop(struct mt_order *order)
{
	mt_order_free(order);
	mt_batch_free(encoder.batch);
}

static void run_exchange(struct mt_order_stats *ret_stats)
{
	static struct thread threads[PRODUCERS];
	pthread_t ids[PRODUCERS];
	struct mt_shm shm;
	struct mt_order *order = order_start(&shm, 256 << 10);

	claim_process();
	for (heap_count = 0; heap_count < BLOCKS; heap_count++)
		heap_free[heap_count] = heap_count;
	memset(shadow, 0, sizeof(shadow));
	memset(mailbox, 0, sizeof(mailbox));
	records_written = 0;
	mt_store_relaxed(&running, PRODUCERS);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		threads[i] = (struct thread){
			.random = 88172645463325252u + i,
			.behind = i * skew_ticks,
		};
		must(pthread_create(&ids[i], NULL, produce, &threads[i]) == 0, "pthread_create");
	}
	while (mt_load_acquire(&running) != 0)
		if (mt_order_round(order) == 0)
			usleep(200);
	for (uint32_t i = 0; i < PRODUCERS; i++)
		pthread_join(ids[i], NULL);
	mt_order_finish(order);
	mt_order_stats(order, ret_stats);
	printf("# contradictions %llu, out of place %llu, unknown frees %llu, live allocs %llu, "
	       "parked %llu, late %llu, split %llu\n",
	       (unsigned long long)checker.contradictions, (unsigned long long)checker.out_of_place,
	       (unsigned long long)ret_stats->unknown_frees,
	       (unsigned long long)ret_stats->live_allocs, (unsigned long long)ret_stats->parked,
	       (unsigned long long)ret_stats->late, (unsigned long long)ret_stats->split_reallocs);
	order_stop(order);
}

/* The shortest time that the counter tells: two allocations within it may trade places. */
static uint64_t tick_ns(void)
{
	uint64_t last = mt_clock_read(counter), least = UINT64_MAX;
	struct mt_clock clock;

	must(mt_clock_init(&clock, counter) == 0, "mt_clock_init");
	for (int i = 0; i < 100000; i++) {
		uint64_t now = mt_clock_read(counter);

		if (now != last && now - last < least)
			least = now - last;
		last = now;
	}
	return mt_clock_ns(&clock, last + least) - mt_clock_ns(&clock, last);
}

/*
 * With plain stamps two allocations of an address may trade places, if the allocator hands a block
 * on in less time than a stamp can be early. This one does: it is a stack under a lock.
 */
static void exchange(int first)
{
	/* An emulator's may be as coarse as a microsecond; a processor's is below 50 ns. */
	bool is_coarse = tick_ns() > 200;
	uint64_t may_trade = strict ? 0 : 2 + to_do / 1000000;
	struct mt_order_stats stats;
	char text[96];

	run_exchange(&stats);
	snprintf(text, sizeof(text), "%s: %llu records in order, allocations in their places",
		 strict ? "strict" : "plain", (unsigned long long)records_written);
	result(first,
	       checker.contradictions == 0 && (is_coarse || checker.out_of_place <= may_trade),
	       text);
	result(first + 1, stats.records == records_written, "every record was read");
	result(first + 2, stats.unknown_frees + stats.live_allocs + stats.corrupt_streams == 0,
	       "nothing was flagged");
	result(first + 3, checker.backwards == 0, "times do not fall");
}

/*
 * Clocks that differ by less than a record is parked for: no contradiction, though allocations
 * trade places. Clocks that differ by more: not all can be put right, and what cannot is flagged.
 */
static void skewed_exchange(int number, uint64_t skew_ns, bool is_too_much)
{
	struct mt_order_stats stats;
	struct mt_clock clock;
	uint64_t flagged;
	char text[96];

	must(mt_clock_init(&clock, counter) == 0, "mt_clock_init");
	skew_ticks = mt_clock_ticks(&clock, skew_ns / (PRODUCERS - 1));
	run_exchange(&stats);
	skew_ticks = 0;
	flagged = stats.unknown_frees + stats.live_allocs;
	snprintf(text, sizeof(text), "clocks that differ by %llu us: %s",
		 (unsigned long long)skew_ns / 1000,
		 is_too_much ? "what contradicts is flagged" : "no contradiction");
	result(number,
	       checker.contradictions == flagged && (flagged == 0 || is_too_much) &&
		       stats.records == records_written && stats.corrupt_streams == 0 &&
		       checker.backwards == 0,
	       text);
}

static void *one_malloc(void *argument)
{
	struct thread thread = { .random = 1 };
	uint32_t block = (uint32_t)(uintptr_t)argument;

	claim_thread(&thread);
	record(&thread, MT_REC_MALLOC, block % BLOCKS, block / BLOCKS);
	record(&thread, MT_REC_FREE, block % BLOCKS, 0);
	return NULL;
}

/* As the kernel's tids do: one after the other, each new slot tells that the old thread is gone. */
static void serial_threads(uint32_t count)
{
	struct mt_order_stats stats;
	struct mt_shm shm;
	struct mt_order *order = order_start(&shm, 1 << 20);
	uint32_t chunks, slots;
	pthread_t id;

	claim_process();
	for (uint32_t i = 0; i < count; i++) {
		must(pthread_create(&id, NULL, one_malloc, (void *)(uintptr_t)i) == 0,
		     "pthread_create");
		pthread_join(id, NULL);
		if (i % 8 == 0)
			mt_order_round(order);
	}
	chunks = mt_load_relaxed(&producer.header->bump);
	slots = mt_load_relaxed(&producer.header->thread_bump);
	mt_order_finish(order);
	mt_order_stats(order, &stats);
	result(12, checker.contradictions == 0 && stats.records == 2 * (uint64_t)count,
	       "threads one after the other: every record, in order");
	result(13, chunks < 128 && slots < 128, "and few chunks and slots");
	printf("# %u threads used %u chunks and %u slots\n", count, chunks, slots);
	order_stop(order);
}

/* Any word of the segment may change at any time; the layout is what a hostile program knows. */
static void *spoil(void *argument)
{
	const struct mt_shm *shm = argument;
	uint64_t random = 0x9e3779b97f4a7c15u;
	char *base = (char *)shm->header;

	for (uint64_t i = 0; i < to_do; i++) {
		uint64_t pick = random_next(&random), at, value = random_next(&random);

		switch (pick % 5) {
		case 0:
			at = (pick >> 8) % sizeof(struct mt_shm_header);
			break;
		case 1:
			at = shm->layout.procs_offset + (pick >> 8) % 4096;
			break;
		case 2:
			at = shm->layout.threads_offset + (pick >> 8) % 8192;
			break;
		case 3:
			at = shm->layout.links_offset + (pick >> 8) % 1024;
			break;
		default:
			at = shm->layout.chunks_offset + (pick >> 8) % (64 * 1024);
			break;
		}
		/* Small numbers get further than large ones. */
		if (pick >> 60)
			value &= (1u << (pick >> 60)) - 1;
		if (pick >> 59 & 1)
			mt_store_relaxed((uint32_t *)(base + (at & ~UINT64_C(3))), (uint32_t)value);
		else
			mt_store_relaxed((uint64_t *)(base + (at & ~UINT64_C(7))), value);
	}
	mt_sub_acq_rel(&running, 1);
	return NULL;
}

static void hostile(int runs)
{
	for (int run = 0; run < runs; run++) {
		struct mt_shm shm;
		struct mt_order *order = order_start(&shm, 64 << 10);
		struct mt_shm seen = shm;
		pthread_t id;

		claim_process();
		mt_store_relaxed(&running, 1);
		must(pthread_create(&id, NULL, spoil, &seen) == 0, "pthread_create");
		while (mt_load_acquire(&running) != 0)
			mt_order_round(order);
		pthread_join(id, NULL);
		mt_order_finish(order);
		order_stop(order);
	}
	result(14, true, "a hostile writer is survived");
}

int main(void)
{
	bool full = getenv("MT_LONG") != NULL;

	printf("1..14\n");
	counter = mt_clock_detect();
	to_do = full ? 10000000 : 200000;
	exchange(1);
	strict = true;
	exchange(5);
	strict = false;
	to_do = full ? 5000000 : 200000;
	skewed_exchange(9, 3000, false);
	skewed_exchange(10, 40000, false);
	skewed_exchange(11, 600000, true);
	serial_threads(full ? 20000 : 2000);
	to_do = full ? 20000000 : 200000;
	hostile(full ? 200 : 10);
	return failures != 0;
}
