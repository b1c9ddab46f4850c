/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The order engine against made-up histories whose clocks are bad: each thread's clock is off by
 * something, ticks are coarse so that stamps are equal, frees are stamped early. The history itself
 * is a possible one; what each allocation's place is among those of its address is known.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "tests/unit/order_support.h"

#define PID	  BENCH_PID
#define THREADS	  5u
#define ADDRESSES 24u
#define STEPS	  9000u
#define STEP_NS	  100u
#define SEEDS	  12u
#define ADDRESS	  UINT64_C(0x10000)

struct clocks {
	uint64_t skew_ns;  /* clocks of two threads differ by up to that */
	uint64_t early_ns; /* a free's stamp may be as much too early */
	uint64_t tick_ns;
	bool fails;   /* some reallocs do */
	bool exact;   /* allocations come out in their true order */
	bool flagged; /* too bad to be put right: it must be said */
};

enum state {
	DEAD,
	LIVE,
	BUSY, /* of a realloc that will fail: nobody else's */
};

struct thread {
	struct mt_writer writer;
	uint64_t skew_ns, last;
	bool in_realloc, will_fail;
	unsigned old;
};

static struct bench bench;
static struct bench_image image;
static struct thread threads[THREADS];
static enum state states[ADDRESSES];
static uint64_t places[ADDRESSES]; /* allocations so far */
static unsigned dead;
static uint64_t seed, records;

static uint64_t dice(uint64_t sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 12) % sides;
}

static void put(struct thread *thread, const struct clocks *clocks, uint64_t at,
		enum mt_rec_kind kind, unsigned address)
{
	bool is_free = kind == MT_REC_FREE || kind == MT_REC_REALLOC_BEGIN;
	bool is_alloc = kind == MT_REC_MALLOC || kind == MT_REC_REALLOC_END;
	uint64_t stamp = at + thread->skew_ns;

	if (is_free && clocks->early_ns)
		stamp -= dice(clocks->early_ns);
	stamp -= stamp % clocks->tick_ns;
	if (stamp < thread->last)
		stamp = thread->last; /* no clock goes back for one thread */
	thread->last = stamp;
	bench_put(&bench, &image, &thread->writer, stamp, kind, ADDRESS + 16 * address,
		  is_alloc ? ++places[address] : 0);
	records++;
}

static void become(unsigned address, enum state state)
{
	dead += (state == DEAD) - (states[address] == DEAD);
	states[address] = state;
}

/* Some address in that state; there must be one. */
static unsigned some(enum state state)
{
	unsigned at = (unsigned)dice(ADDRESSES);

	for (unsigned i = 0; i < ADDRESSES && states[at] != state; i++)
		at = (at + 1) % ADDRESSES;
	cr_assert_eq(states[at], state);
	return at;
}

static void end_realloc(struct thread *thread, const struct clocks *clocks, uint64_t at)
{
	unsigned address = thread->will_fail ? thread->old : some(DEAD);

	thread->in_realloc = false;
	become(address, LIVE);
	put(thread, clocks, at, thread->will_fail ? MT_REC_REALLOC_FAILED : MT_REC_REALLOC_END,
	    address);
}

static void begin_realloc(struct thread *thread, const struct clocks *clocks, uint64_t at)
{
	thread->in_realloc = true;
	thread->will_fail = clocks->fails && dice(8) == 0;
	thread->old = some(LIVE);
	put(thread, clocks, at, MT_REC_REALLOC_BEGIN, thread->old);
	become(thread->old, thread->will_fail ? BUSY : DEAD);
}

static void step(struct thread *thread, const struct clocks *clocks, uint64_t at)
{
	unsigned address;

	if (thread->in_realloc) {
		end_realloc(thread, clocks, at);
	} else if (dead > ADDRESSES / 2) {
		address = some(DEAD);
		become(address, LIVE);
		put(thread, clocks, at, MT_REC_MALLOC, address);
	} else if (dice(3) == 0) {
		begin_realloc(thread, clocks, at);
	} else {
		address = some(LIVE);
		become(address, DEAD);
		put(thread, clocks, at, MT_REC_FREE, address);
	}
}

static void open_history(const struct clocks *clocks)
{
	struct bench_options options = { 0 };

	bench_open(&bench, &options);
	bench.base -= UINT64_C(2000000000); /* all stamps are of the past */
	bench_image(&bench, &image, PID, 0);
	memset(threads, 0, sizeof(threads));
	memset(states, 0, sizeof(states));
	memset(places, 0, sizeof(places));
	dead = ADDRESSES;
	records = 0;
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i].writer = bench_thread(&image, image.proc, PID + (int32_t)i);
		threads[i].skew_ns = clocks->skew_ns * i / (THREADS - 1);
	}
}

static uint64_t count_out_of_place(void)
{
	uint64_t seen[ADDRESSES] = { 0 }, wrong = 0;

	for (size_t i = 0; i < bench.count; i++) {
		const struct mt_event *event = &bench.events[i];
		uint64_t address = (event->addr - ADDRESS) / 16;

		if (event->type == MT_EVENT_MALLOC || event->type == MT_EVENT_REALLOC)
			wrong += event->size != ++seen[address];
	}
	return wrong;
}

/* Half of the histories are read while they are written. */
static struct mt_order_stats run_history(const struct clocks *clocks, unsigned number)
{
	seed = 88172645463325252u + number;
	open_history(clocks);
	for (uint64_t i = 0; i < STEPS; i++) {
		step(&threads[dice(THREADS)], clocks, 1000000 + i * STEP_NS);
		if (number % 2 && dice(300) == 0)
			mt_order_round(bench.order);
	}
	return bench_finish(&bench);
}

ParameterizedTestParameters(order_clocks, histories)
{
	static struct clocks all[] = {
		{ .tick_ns = 1, .fails = true, .exact = true },
		{ .tick_ns = 1, .early_ns = 1700, .exact = true },
		{ .tick_ns = 1, .early_ns = 40000, .exact = true },
		{ .tick_ns = 1, .early_ns = 40000, .fails = true },
		{ .tick_ns = 1000, .fails = true },
		{ .tick_ns = 40000, .fails = true },
		{ .tick_ns = 1, .skew_ns = 1000, .fails = true },
		{ .tick_ns = 1, .skew_ns = 3000, .early_ns = 1700, .fails = true },
		{ .tick_ns = 100, .skew_ns = 20000, .early_ns = 1700, .fails = true },
		{ .tick_ns = 1, .skew_ns = 40000, .fails = true },
		{ .tick_ns = 1, .skew_ns = 100000, .fails = true, .flagged = true },
		{ .tick_ns = 1, .skew_ns = 400000, .fails = true, .flagged = true },
	};

	return cr_make_param_array(struct clocks, all, sizeof(all) / sizeof(all[0]));
}

ParameterizedTest(struct clocks *clocks, order_clocks, histories)
{
	uint64_t flags = 0;

	for (unsigned number = 0; number < SEEDS; number++) {
		struct mt_order_stats stats = run_history(clocks, number);
		uint64_t wrong = bench_contradictions(&bench);

		cr_assert_eq(stats.records, records);
		cr_assert_eq(stats.corrupt_streams, 0);
		/* Whatever the clocks: no contradiction that is not on record. */
		cr_assert_eq(wrong, stats.unknown_frees + stats.live_allocs,
			     "history %u: %u contradictions, %u flagged", number, (unsigned)wrong,
			     (unsigned)(stats.unknown_frees + stats.live_allocs));
		flags += wrong;
		if (clocks->exact)
			cr_assert_eq(count_out_of_place(), 0);
		bench_close(&bench);
	}
	if (clocks->flagged)
		cr_assert_gt(flags, 0);
	else
		cr_assert_eq(flags, 0);
}
