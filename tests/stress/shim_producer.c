/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Both ends of the chunks as threads. What must hold, whatever happens:
 *   whole     a record that is read is as it was written, in the order of its thread
 *   exact     recorded + lost = done, for each thread and cause
 *   lossless  with policy block and a reader that goes on, lost is 0
 *   bounded   no append takes longer than the wait that was set, nor any after the first
 *   survives  what a process published before kill -9 is read, up to the last whole record
 * Plain main() since criterion does not run under TSan.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/chunk_consumer.h"
#include "common/chunk_producer.h"

#define THREADS	    6
#define THREADS_MAX 64
#define DONE	    60000

struct side {
	struct mt_shm shm;
	struct mt_consumer consumer;
	struct mt_producer producer;
	uint32_t proc; /* + 1 */
	uint32_t per_thread;
	uint32_t done; /* atomic: writers that have ended */
	uint64_t recorded[THREADS_MAX];
	uint64_t lost[THREADS_MAX][8];
	uint64_t slowest_ns;
	bool whole;
};

struct reader {
	struct mt_stream streams[THREADS_MAX];
	struct mt_thread_claim claims[THREADS_MAX];
	uint32_t count;
};

static int number, failed;

static void check(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
	failed += !good;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void set_up(struct side *side, uint64_t pool_bytes, enum mt_policy policy,
		   uint32_t max_wait_ms)
{
	struct mt_shm_options options = { .pool_bytes = pool_bytes,
					  .max_bytes = pool_bytes,
					  .max_map_bytes = UINT64_MAX,
					  .policy = policy,
					  .counter = MT_COUNTER_MONOTONIC,
					  .max_wait_ms = max_wait_ms };
	struct mt_proc_birth birth = { .pid = 1, .tid = 1 };

	memset(side, 0, sizeof(*side));
	side->whole = true;
	side->per_thread = DONE;
	if (mt_shm_create(&options, &side->shm) != 0 ||
	    mt_producer_open(side->shm.header, side->shm.layout.total_bytes, &side->producer) !=
		    0 ||
	    mt_consumer_init(&side->consumer, &side->shm) != 0) {
		printf("Bail out! no shared memory\n");
		exit(1);
	}
	side->producer.now_ns = now_ns;
	side->proc = mt_producer_claim_proc(&side->producer, &birth);
}

/* One record: the thread and its number twice over, so that a torn one shows. */
static void append(struct side *side, struct mt_writer *writer, uint32_t thread, uint64_t at)
{
	uint64_t start = now_ns(), ns, slowest;
	int result = 0;

	if (writer->next == writer->end)
		result = mt_writer_turn_over(&side->producer, writer);
	if (result == 0)
		mt_writer_put(writer, at * 3, at << 8 | thread, at, MT_REC_MALLOC);
	else if (result >= MT_TURN_LOST)
		mt_writer_lost(&side->producer, writer, (enum mt_lost)(result - MT_TURN_LOST));
	ns = now_ns() - start;
	slowest = mt_load_relaxed(&side->slowest_ns);
	while (ns > slowest && !mt_cas_acq_rel(&side->slowest_ns, &slowest, ns))
		;
}

struct start {
	struct side *side;
	uint32_t thread;
};

static void *write_all(void *argument)
{
	struct start *start = argument;
	struct side *side = start->side;
	struct mt_writer writer = { 0 };
	uint64_t i;

	if (!mt_writer_claim(&side->producer, &writer, side->proc, (int32_t)start->thread,
			     1000 + start->thread, 0)) {
		for (i = 0; i < side->per_thread; i++)
			mt_writer_lost(&side->producer, &writer, MT_LOST_NO_SLOT);
	} else {
		for (i = 0; i < side->per_thread; i++)
			append(side, &writer, start->thread, i);
	}
	mt_add_acq_rel(&side->done, 1);
	return NULL;
}

static void read_one(struct side *side, struct reader *reader, uint32_t i)
{
	struct mt_stream *stream = &reader->streams[i];
	uint32_t thread = (uint32_t)reader->claims[i].tid;

	if (mt_stream_note(&side->consumer, stream) != 0)
		side->whole = false;
	while (stream->taken < stream->seen) {
		struct mt_rec rec;
		uint64_t at;

		if (stream->read == stream->end) {
			mt_stream_advance(&side->consumer, stream);
			continue;
		}
		rec = mt_stream_peek(stream);
		at = rec.addr >> 8;
		if ((rec.addr & 255) != thread || rec.stamp != at * 3 ||
		    rec.size_kind != (at << 8 | MT_REC_MALLOC) || at < side->recorded[thread])
			side->whole = false;
		side->recorded[thread]++;
		stream->read++;
		stream->taken++;
	}
}

static void read_round(struct side *side, struct reader *reader)
{
	struct mt_thread_claim claim;
	uint32_t i;

	(void)mt_consumer_scan_threads(&side->consumer);
	while (reader->count < THREADS_MAX && mt_consumer_next_thread(&side->consumer, &claim)) {
		reader->claims[reader->count] = claim;
		mt_stream_init(&reader->streams[reader->count++], claim.slot);
	}
	for (i = 0; i < reader->count; i++)
		read_one(side, reader, i);
	mt_consumer_settle(&side->consumer, now_ns(), false);
}

static void read_rest(struct side *side, struct reader *reader)
{
	uint32_t i;

	read_round(side, reader);
	read_round(side, reader);
	for (i = 0; i < reader->count; i++)
		mt_consumer_thread_lost(&side->consumer, reader->claims[i].slot,
					side->lost[reader->claims[i].tid]);
}

/* Runs the writers; the reader goes on beside them, or only begins when they have ended. */
static void run(struct side *side, uint32_t threads, bool read_on)
{
	static struct reader reader;
	pthread_t ids[THREADS_MAX];
	struct start starts[THREADS_MAX];
	uint32_t i;

	memset(&reader, 0, sizeof(reader));
	for (i = 0; i < threads; i++) {
		starts[i] = (struct start){ side, i };
		if (pthread_create(&ids[i], NULL, write_all, &starts[i]) != 0)
			exit(1);
	}
	while (read_on && mt_load_acquire(&side->done) < threads)
		read_round(side, &reader);
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	read_rest(side, &reader);
}

static uint64_t lost_of(const struct side *side, uint32_t thread)
{
	uint64_t sum = 0;
	int cause;

	for (cause = 0; cause < MT_LOST_CAUSES; cause++)
		sum += side->lost[thread][cause];
	return sum;
}

static bool is_exact(const struct side *side, uint32_t threads)
{
	uint32_t i;

	for (i = 0; i < threads; i++) {
		if (side->recorded[i] + lost_of(side, i) != side->per_thread)
			return false;
	}
	return true;
}

static uint64_t lost_by(const struct side *side, enum mt_lost cause)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < THREADS_MAX; i++)
		sum += side->lost[i][cause];
	return sum;
}

static void test_block(void)
{
	struct side side;

	set_up(&side, 256 << 10, MT_POLICY_BLOCK, 60000);
	run(&side, THREADS, true);
	check(side.whole, "block: records are whole and in order");
	check(is_exact(&side, THREADS) && lost_of(&side, 0) == 0 && side.recorded[0] == DONE,
	      "block: nothing is lost");
	mt_consumer_fini(&side.consumer);
}

static void test_spin(void)
{
	struct side side;

	set_up(&side, 128 << 10, MT_POLICY_BLOCK, 60000);
	side.producer.no_syscalls = 1;
	run(&side, 2, true);
	check(side.whole && is_exact(&side, 2) && lost_of(&side, 0) + lost_of(&side, 1) == 0,
	      "block: waits without system calls lose nothing");
	mt_consumer_fini(&side.consumer);
}

static void test_drop(void)
{
	struct side side;

	set_up(&side, 64 << 10, MT_POLICY_DROP, 10000);
	run(&side, THREADS, true);
	check(side.whole && is_exact(&side, THREADS), "drop: recorded + lost = done");
	mt_consumer_fini(&side.consumer);

	set_up(&side, 64 << 10, MT_POLICY_DROP, 10000);
	run(&side, THREADS, false);
	check(side.whole && is_exact(&side, THREADS) && lost_by(&side, MT_LOST_POLICY) != 0,
	      "drop: the same when nobody reads");
	mt_consumer_fini(&side.consumer);
}

static void test_stopped(void)
{
	struct side side;
	uint64_t start;

	set_up(&side, 64 << 10, MT_POLICY_BLOCK, 200);
	start = now_ns();
	run(&side, THREADS, false);
	check(side.whole && is_exact(&side, THREADS) && lost_by(&side, MT_LOST_TIMEOUT) != 0,
	      "stopped reader: what is dropped after the wait is counted");
	/* Each thread may be in the one wait; after that nobody waits. */
	check(side.slowest_ns >= 200000000 && now_ns() - start < 30000000000,
	      "stopped reader: waits once, and not for longer than was set");
	mt_consumer_fini(&side.consumer);
}

/* How long one thread waits for a reader whose heartbeat moved so long ago. */
static uint64_t waits_ns(uint64_t beat_age_ns, uint32_t max_wait_ms)
{
	struct side side;
	uint64_t slowest_ns;

	set_up(&side, 64 << 10, MT_POLICY_BLOCK, max_wait_ms);
	mt_store_release(&side.shm.header->beat_ns, now_ns() - beat_age_ns);
	run(&side, 1, false);
	if (!is_exact(&side, 1) || lost_by(&side, MT_LOST_TIMEOUT) == 0)
		side.slowest_ns = 0;
	slowest_ns = side.slowest_ns;
	mt_consumer_fini(&side.consumer);
	return slowest_ns;
}

static void test_stopped_before(void)
{
	const uint64_t second = 1000000000, hour = 3600 * second;
	uint64_t ns;

	ns = waits_ns(2 * second, 2000);
	check(ns >= second / 20 && ns < second, "stopped before: a short look is enough");
	ns = waits_ns(second * 3 / 2, 2000);
	check(ns >= second * 2 / 5 && ns < second * 8 / 5, "stopped before: the rest of the wait");
	ns = waits_ns(2 * hour, 500);
	check(ns >= second / 2, "another clock: the wait is the thread's own");
}

static void test_dead(void)
{
	struct side side;

	set_up(&side, 64 << 10, MT_POLICY_BLOCK, 600000);
	mt_store_release(&side.shm.header->alive, 1 | FUTEX_OWNER_DIED);
	run(&side, THREADS, false);
	check(is_exact(&side, THREADS) && lost_by(&side, MT_LOST_TIMEOUT) != 0,
	      "dead reader: nobody waits, losses are counted");
	mt_consumer_fini(&side.consumer);
}

static void test_closed(void)
{
	struct side side;

	set_up(&side, 64 << 10, MT_POLICY_BLOCK, 600000);
	mt_consumer_close(&side.consumer);
	run(&side, 2, false);
	check(side.recorded[0] == 0 && lost_of(&side, 0) == 0,
	      "closed: nothing starts and nothing counts as lost");
	mt_consumer_fini(&side.consumer);
}

static void test_slots(void)
{
	struct side side;
	uint64_t *lost;

	set_up(&side, 1 << 20, MT_POLICY_BLOCK, 10000);
	side.producer.thread_count = 2;
	run(&side, 4, true);
	lost = side.producer.procs[side.proc - 1].lost;
	check(side.recorded[0] + side.recorded[1] + side.recorded[2] + side.recorded[3] ==
			      2 * DONE &&
		      lost[MT_LOST_NO_SLOT] == 2 * DONE,
	      "thread slots used up: the process counts what is lost");
	mt_consumer_fini(&side.consumer);
}

/* The child writes until it is killed. The other side then reads whole records, all of them. */
static void test_kill(void)
{
	static struct reader reader;
	struct side side;
	struct mt_writer writer = { 0 };
	uint64_t i;
	pid_t pid;

	set_up(&side, 1 << 20, MT_POLICY_BLOCK, 60000);
	pid = fork();
	if (pid == 0) {
		if (!mt_writer_claim(&side.producer, &writer, side.proc, 0, 1000, 0))
			_exit(1);
		for (i = 0;; i++)
			append(&side, &writer, 0, i);
	}
	while (side.recorded[0] < 4 * DONE)
		read_round(&side, &reader);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	read_rest(&side, &reader);
	i = reader.streams[0].taken;
	check(side.whole && side.recorded[0] == i && reader.streams[0].seen == i,
	      "killed writer: all that it published is read");
	mt_consumer_fini(&side.consumer);
}

static void test_bad_segment(void)
{
	struct side side;
	struct mt_producer producer;
	struct mt_shm_header *header;
	uint64_t bytes;

	set_up(&side, 64 << 10, MT_POLICY_BLOCK, 10);
	header = side.shm.header;
	bytes = side.shm.layout.total_bytes;
	check(mt_producer_open(header, bytes - 4096, &producer) != 0, "a segment cut short");
	header->chunk_count++;
	check(mt_producer_open(header, bytes, &producer) != 0, "chunks beyond the end");
	header->chunk_count--;
	header->version++;
	check(mt_producer_open(header, bytes, &producer) != 0, "another version");
	header->version--;
	check(mt_producer_open(header, bytes, &producer) == 0, "and the good one");
	mt_consumer_fini(&side.consumer);
}

int main(void)
{
	test_bad_segment();
	test_block();
	test_spin();
	test_drop();
	test_stopped();
	test_stopped_before();
	test_dead();
	test_closed();
	test_slots();
	test_kill();
	printf("1..%d\n", number);
	return failed != 0;
}
