// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The merge's pace, against a made-up encoder and a made-up clock: workers that take batch by batch
 * and a merge that has more than enough to put in.
 */
#include "sidecar/pace.h"

#include <criterion/criterion.h>
#include <string.h>

#include "sidecar/batch.h"

#define MS		UINT64_C(1000000)
#define MERGE_EVENT_NS	10
#define WORKERS_MAX	3
#define BATCHES		60
#define WITHOUT_BATCHES 10 /* until the pace is learned */

struct bench {
	struct mt_encoder_load load;
	struct mt_pace pace;
	uint64_t now_ns, work_ns; /* how long a worker takes for a batch */
	uint64_t ends_ns[WORKERS_MAX];
	unsigned busy;
	uint32_t filled;
	unsigned came_back;
	uint64_t back_ns;
	uint64_t last_ns, longest_gap_ns; /* between events that went in */
	uint64_t idle_ns;		  /* of all workers */
};

static void start(struct bench *b, unsigned workers, uint64_t work_ns)
{
	memset(b, 0, sizeof(*b));
	b->load.workers = workers;
	b->load.in_flight = 2 * workers + 2;
	b->work_ns = work_ns;
	b->now_ns = b->last_ns = 1000 * MS;
}

static void begin_work(struct bench *b)
{
	unsigned waiting = b->load.ahead - b->busy;

	for (unsigned i = 0; i < b->load.workers && waiting; i++) {
		if (b->ends_ns[i])
			continue;
		b->ends_ns[i] = b->now_ns + b->work_ns;
		b->busy++;
		waiting--;
	}
}

static void come_back(struct bench *b)
{
	bool saturated = b->load.ahead >= b->load.workers;

	b->busy--;
	b->load.ahead--;
	b->came_back++;
	if (b->back_ns)
		b->load.batch_ns = b->load.batch_ns ? b->load.batch_ns - b->load.batch_ns / 8 +
							      (b->now_ns - b->back_ns) / 8
						    : b->now_ns - b->back_ns;
	b->back_ns = saturated ? b->now_ns : 0;
	b->load.since_ns = b->now_ns;
}

/* Lets time go on: batches come back, and workers begin others. */
static void pass(struct bench *b, uint64_t ns)
{
	for (uint64_t end = b->now_ns + ns; b->now_ns < end;) {
		uint64_t step = end - b->now_ns < MS / 10 ? end - b->now_ns : MS / 10;

		b->now_ns += step;
		for (unsigned i = 0; i < b->load.workers; i++) {
			if (b->ends_ns[i] && b->ends_ns[i] <= b->now_ns) {
				b->ends_ns[i] = 0;
				come_back(b);
			}
		}
		begin_work(b);
		if (b->came_back > WITHOUT_BATCHES)
			b->idle_ns += step * (b->load.workers - b->busy);
	}
}

static void put(struct bench *b, uint32_t events)
{
	if (b->came_back > WITHOUT_BATCHES && b->now_ns - b->last_ns > b->longest_gap_ns)
		b->longest_gap_ns = b->now_ns - b->last_ns;
	pass(b, (uint64_t)events * MERGE_EVENT_NS);
	b->last_ns = b->now_ns;
	b->filled += events;
	if (b->filled < MT_BATCH_EVENTS)
		return;
	if (b->load.ahead == 0)
		b->load.since_ns = b->now_ns;
	b->load.ahead++;
	b->filled = 0;
	begin_work(b);
	while (b->load.ahead == b->load.in_flight)
		pass(b, MS / 10);
}

static void step(struct bench *b)
{
	uint32_t events;
	uint64_t wait_ns = mt_pace_next(&b->pace, &b->load, b->filled, b->now_ns, &events);

	cr_assert_gt(events, 0);
	cr_assert_leq(events, MT_PACE_EVENTS_MAX);
	cr_assert_leq(wait_ns, MT_PACE_WAIT_NS);
	pass(b, wait_ns);
	put(b, events < MT_BATCH_EVENTS - b->filled ? events : MT_BATCH_EVENTS - b->filled);
}

static void run(struct bench *b, unsigned batches)
{
	while (b->came_back < batches)
		step(b);
}

Test(pace, events_go_on_while_the_encoder_is_slow)
{
	for (unsigned workers = 1; workers <= WORKERS_MAX; workers++) {
		struct bench b;

		start(&b, workers, 40 * MS);
		run(&b, BATCHES);
		cr_expect_lt(b.longest_gap_ns, 4 * MS, "%u workers: %llu us without an event",
			     workers, (unsigned long long)b.longest_gap_ns / 1000);
	}
}

Test(pace, the_encoder_always_has_work)
{
	for (unsigned workers = 1; workers <= WORKERS_MAX; workers++) {
		struct bench b;
		uint64_t from_ns;

		start(&b, workers, 40 * MS);
		run(&b, WITHOUT_BATCHES);
		from_ns = b.now_ns;
		run(&b, BATCHES);
		cr_expect_lt(b.idle_ns, workers * (b.now_ns - from_ns) / 50,
			     "%u workers: idle for %llu us", workers,
			     (unsigned long long)b.idle_ns / 1000);
	}
}

Test(pace, no_gap_when_batches_take_twice_as_long)
{
	struct bench b;

	start(&b, 1, 20 * MS);
	run(&b, BATCHES);
	b.work_ns = 40 * MS;
	run(&b, BATCHES + 3);
	cr_expect_lt(b.longest_gap_ns, 4 * MS, "%llu us without an event",
		     (unsigned long long)b.longest_gap_ns / 1000);
}

Test(pace, the_first_batches_leave_no_gap_either)
{
	struct bench b;

	start(&b, 1, 40 * MS);
	while (b.came_back < 4) {
		uint64_t before_ns = b.now_ns;

		step(&b);
		cr_assert_lt(b.now_ns - before_ns, 12 * MS, "a step took %llu us",
			     (unsigned long long)(b.now_ns - before_ns) / 1000);
	}
}

Test(pace, none_while_the_encoder_keeps_up)
{
	struct bench b;
	uint32_t events;

	start(&b, 2, 40 * MS);
	b.load.batch_ns = 20 * MS;
	for (b.load.ahead = 0; b.load.ahead <= b.load.workers; b.load.ahead++) {
		b.pace.due_ns = b.now_ns + 5 * MS; /* of a time when it was behind */
		cr_expect_eq(mt_pace_next(&b.pace, &b.load, 0, b.now_ns, &events), 0);
		cr_expect_eq(events, MT_PACE_EVENTS_MAX);
	}
	cr_expect_gt(b.load.ahead, b.load.workers);
	(void)mt_pace_next(&b.pace, &b.load, 1, b.now_ns, &events);
	cr_expect_gt(mt_pace_next(&b.pace, &b.load, 1 + events, b.now_ns, &events), 0);
}
