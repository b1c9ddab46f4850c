/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>

#include "common/clock.h"

static struct mt_clock clock_of_test;

static void open_clock(void)
{
	cr_assert_eq(mt_clock_init(&clock_of_test, mt_clock_detect()), 0);
}

TestSuite(clock, .init = open_clock);

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

Test(clock, agrees_with_the_system_to_a_microsecond)
{
	uint64_t best = UINT64_MAX;

	/* The best of many: between the two readings of one try anything may happen. */
	for (int i = 0; i < 1000; i++) {
		uint64_t counter = mt_clock_read(clock_of_test.counter);
		uint64_t ns = mt_clock_monotonic_ns(), off;

		mt_clock_sample(&clock_of_test);
		off = distance(mt_clock_ns(&clock_of_test, counter), ns);
		best = off < best ? off : best;
	}
	cr_assert_lt(best, 1000);
}

Test(clock, never_falls_over_pairs_made_by_hand)
{
	uint64_t last = 0;

	/* The rate changes in the middle, as it does when the system's clock is disciplined. */
	clock_of_test.count = 3;
	clock_of_test.pairs[0] = (struct mt_clock_pair){ 1000000, 5000000 };
	clock_of_test.pairs[1] = (struct mt_clock_pair){ 1001000, 5000500 };
	clock_of_test.pairs[2] = (struct mt_clock_pair){ 1002000, 5000510 };
	clock_of_test.piece.len = 0;
	for (uint64_t counter = 998000; counter < 1005000; counter++) {
		uint64_t ns = mt_clock_ns(&clock_of_test, counter);

		cr_assert_geq(ns, last);
		last = ns;
	}
	cr_assert_eq(mt_clock_ns(&clock_of_test, 1000000), 5000000);
	cr_assert_leq(distance(mt_clock_ns(&clock_of_test, 1000500), 5000250), 1);
	cr_assert_leq(distance(mt_clock_ns(&clock_of_test, 999000), 4999500), 1);
	cr_assert_leq(distance(mt_clock_ns(&clock_of_test, 1003000), 5000520), 1);
}

/* A counter may run since before the clock did, and a program writes what it likes. */
Test(clock, does_not_fall_below_zero)
{
	uint64_t last = 0;

	clock_of_test.count = 2;
	clock_of_test.pairs[0] = (struct mt_clock_pair){ UINT64_C(1) << 62, 1000 };
	clock_of_test.pairs[1] = (struct mt_clock_pair){ (UINT64_C(1) << 62) + 100, 1200 };
	clock_of_test.piece.len = 0;
	cr_assert_eq(mt_clock_ns(&clock_of_test, 0), 0);
	cr_assert_eq(mt_clock_ns(&clock_of_test, 1), 0);
	for (uint64_t counter = (UINT64_C(1) << 62) - 1000; counter < (UINT64_C(1) << 62) + 200;
	     counter++) {
		uint64_t ns = mt_clock_ns(&clock_of_test, counter);

		cr_assert_geq(ns, last);
		last = ns;
	}
	cr_assert_eq(last, 1000 + 2 * 199);
}

Test(clock, turns_times_back_into_counters)
{
	for (int64_t off = -1000000000; off < 1000000000; off += 7777777) {
		uint64_t counter = mt_clock_read(clock_of_test.counter) + (uint64_t)off;
		uint64_t ns = mt_clock_ns(&clock_of_test, counter);
		uint64_t tick_ns = mt_clock_ns(&clock_of_test, counter + 1) - ns;
		uint64_t back = mt_clock_counter_at(&clock_of_test, ns);

		/* Counters of aarch64 may be as slow as 24 MHz. */
		cr_assert_leq(distance(mt_clock_ns(&clock_of_test, back), ns), 10 + tick_ns);
	}
}

Test(clock, keeps_working_when_pairs_run_out)
{
	uint64_t counter = clock_of_test.pairs[1].counter, ns = clock_of_test.pairs[1].ns;

	for (unsigned i = 0; i < 3 * MT_CLOCK_PAIRS; i++) {
		clock_of_test.pairs[clock_of_test.count - 1].ns =
			clock_of_test.pairs[clock_of_test.count - 2].ns + MT_CLOCK_PAIR_NS;
		mt_clock_sample(&clock_of_test);
	}
	cr_assert_leq(clock_of_test.count, MT_CLOCK_PAIRS);
	cr_assert_gt(mt_clock_ns(&clock_of_test, counter + 1000000), ns);
}

Test(clock, unknown_counters_are_refused)
{
	struct mt_clock other;

	cr_assert_eq(mt_clock_init(&other, (enum mt_counter)99), -EINVAL);
}
