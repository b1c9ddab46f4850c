/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reallocs in the order engine: two records each, of which other threads may be in between. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/order_fixture.h"

TestSuite(order_realloc, .init = open_image, .fini = close_bench);

Test(order_realloc, realloc_is_one_event)
{
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 30, MT_REC_REALLOC_END, 0x20);
	put(&one, 40, MT_REC_REALLOC_BEGIN, 0x20);
	put(&one, 50, MT_REC_REALLOC_END, 0x20);
	put(&one, 60, MT_REC_REALLOC_BEGIN, 0);
	put(&one, 70, MT_REC_REALLOC_END, 0x30);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 r10>20 r20>20 r0>30");
	cr_assert_eq(bench_contradictions(&bench), 0);
}

Test(order_realloc, realloc_is_split_when_the_old_address_was_taken)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_REALLOC_BEGIN, 0x10);
	put(&two, 25, MT_REC_MALLOC, 0x10);
	put(&one, 30, MT_REC_REALLOC_END, 0x20);
	put(&two, 40, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m10 r20 f10");
	cr_assert_eq(bench.events[2].tid, PID);
	cr_assert_eq(stats.split_reallocs, 1);
	cr_assert_eq(bench_contradictions(&bench), 0);
}

Test(order_realloc, realloc_begun_before_its_block_was_seen)
{
	struct mt_order_stats stats;

	put(&two, 25, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 40, MT_REC_REALLOC_END, 0x20);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 r10>20");
	cr_assert_eq(stats.unknown_frees, 0);
}

Test(order_realloc, realloc_of_an_unknown_block_is_flagged)
{
	struct mt_order_stats stats;

	put(&one, 20, MT_REC_REALLOC_BEGIN, 0x10);
	put(&two, 900000, MT_REC_MALLOC, 0x40);
	put(&one, 900010, MT_REC_REALLOC_END, 0x20);
	put(&one, 900020, MT_REC_FREE, 0x20);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m40 r10>20 f20");
	cr_assert_eq(stats.unknown_frees, 1);
}

Test(order_realloc, failed_realloc_leaves_the_block)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 30, MT_REC_REALLOC_FAILED, 0x10);
	put(&two, 40, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10");
	cr_assert_eq(stats.unknown_frees, 0);
}

Test(order_realloc, realloc_to_nothing_is_a_free)
{
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 30, MT_REC_REALLOC_FREED, 0x10);
	put(&two, 40, MT_REC_MALLOC, 0x10);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m10");
	cr_assert_eq(bench_contradictions(&bench), 0);
}

Test(order_realloc, realloc_without_an_end_leaves_the_block)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_REALLOC_BEGIN, 0x10);
	bench_run(&bench);
	mt_order_process_ended(bench.order, PID, 9, true);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 -0");
	cr_assert_eq(stats.dropped_begins, 1);
	cr_assert(mt_order_process_done(bench.order, PID));
}

Test(order_realloc, reallocs_of_many_threads_hand_blocks_on)
{
	/* Each moves its block to where the one before it was, all under way at once. */
	struct mt_order_stats stats;

	put(&one, 1, MT_REC_MALLOC, 0x10);
	put(&two, 2, MT_REC_MALLOC, 0x20);
	put(&one, 10, MT_REC_REALLOC_BEGIN, 0x10);
	put(&two, 11, MT_REC_REALLOC_BEGIN, 0x20);
	put(&two, 12, MT_REC_REALLOC_END, 0x10);
	put(&one, 13, MT_REC_REALLOC_END, 0x30);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 m20 f10 r20>10 r30");
	cr_assert_eq(stats.split_reallocs, 1);
	cr_assert_eq(bench_contradictions(&bench), 0);
}

/* True order: malloc, realloc in place, free by another thread, whose stamp was early. */
Test(order_realloc, free_stamped_before_the_realloc_of_its_block)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&two, 11, MT_REC_FREE, 0x10);
	put(&one, 12, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 13, MT_REC_REALLOC_END, 0x10);
	put(&two, 500000, MT_REC_MALLOC, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 r10 f10 m10");
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
}

/* The same, and the realloc's thread stood still in it for long. */
Test(order_realloc, free_stamped_before_a_realloc_that_takes_long)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&two, 11, MT_REC_FREE, 0x10);
	put(&one, 12, MT_REC_REALLOC_BEGIN, 0x10);
	put(&two, 400000, MT_REC_MALLOC, 0x20);
	put(&one, 500000, MT_REC_REALLOC_END, 0x10);
	put(&one, 900000, MT_REC_FREE, 0x20);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m20 r10 f10 f20");
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
}

/* A block that moves: the early free is of the next block at the old address. */
Test(order_realloc, free_stamped_before_the_realloc_that_left_its_address)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&two, 11, MT_REC_FREE, 0x10);
	put(&one, 12, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 13, MT_REC_REALLOC_END, 0x20);
	put(&two, 14, MT_REC_MALLOC, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 r20 m10 f10");
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
}

/* Begin and end were both stamped before the allocation that gave the block. */
Test(order_realloc, whole_realloc_waits_for_its_block)
{
	struct mt_order_stats stats;
	struct mt_writer three = bench_thread(&image, image.proc, PID + 2);

	put(&one, 20, MT_REC_MALLOC, 0x10);
	put(&two, 10, MT_REC_REALLOC_BEGIN, 0x10);
	put(&two, 11, MT_REC_REALLOC_END, 0x20);
	put(&three, 12, MT_REC_REALLOC_BEGIN, 0x20);
	put(&three, 13, MT_REC_REALLOC_END, 0x30);
	put(&three, 14, MT_REC_FREE, 0x30);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 r10>20 r20>30 f30");
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
	cr_assert_eq(stats.parked, 3);
}

/* The block is the realloc's in its place: what its own thread does next is not out of place. */
Test(order_realloc, unknown_block_is_flagged_and_known_from_then_on)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 11, MT_REC_REALLOC_END, 0x10);
	put(&one, 12, MT_REC_FREE, 0x10);
	put(&one, 500000, MT_REC_MALLOC, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 r10>10 f10 m10");
	cr_assert_eq(stats.unknown_frees, 1);
	cr_assert_eq(stats.live_allocs, 0);
}

Test(order_realloc, process_that_ends_leaves_none_waiting)
{
	put(&one, 10, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 11, MT_REC_REALLOC_END, 0x20);
	put(&one, 12, MT_REC_REALLOC_BEGIN, 0x20);
	put(&one, 13, MT_REC_REALLOC_END, 0x10);
	put(&two, 14, MT_REC_REALLOC_BEGIN, 0x40);
	mt_order_process_ended(bench.order, PID, 0, true);
	bench_finish(&bench);
	cr_assert_eq(strncmp(bench_text(&bench), "x0 r10>20 r20>10", 16), 0, "%s",
		     bench_text(&bench));
}

/* What only clocks that are off can bring about: the early allocation splits a realloc that fails.
 */
Test(order_realloc, failed_one_that_was_split_owes_a_free)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&two, 15, MT_REC_MALLOC, 0x10); /* truly behind the free at 20 */
	put(&two, 16, MT_REC_REALLOC_BEGIN, 0x10);
	put(&two, 17, MT_REC_REALLOC_FAILED, 0x10);
	put(&one, 20, MT_REC_FREE, 0x10);
	put(&two, 30, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m10 f10");
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
}

Test(order_realloc, failed_one_that_was_split_gives_the_block_back)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&two, 15, MT_REC_MALLOC, 0x10);
	put(&two, 16, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 20, MT_REC_FREE, 0x10);
	put(&two, 25, MT_REC_REALLOC_FAILED, 0x10);
	put(&two, 30, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m10 f10 r10 f10");
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
	cr_assert_eq(bench.events[5].size, bench.events[3].size);
}

/* The begin of a later life came before the free of the block: the free is the one that is written.
 */
Test(order_realloc, early_begin_does_not_take_the_place_of_a_free)
{
	put(&two, 15, MT_REC_REALLOC_BEGIN, 0x10);
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 16, MT_REC_FREE, 0x10);
	put(&one, 17, MT_REC_MALLOC, 0x10);
	put(&two, 18, MT_REC_REALLOC_END, 0x20);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m10 r10>20");
	cr_assert_eq(bench.events[2].tid, PID);
}

/* The free of a block that another thread reallocates for long: it is too late, and said to be. */
Test(order_realloc, free_while_a_realloc_is_under_way_is_flagged_once)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_REALLOC_BEGIN, 0x10);
	put(&two, 30, MT_REC_FREE, 0x10);
	put(&two, 200000, MT_REC_MALLOC, 0x40);
	put(&one, 300000, MT_REC_REALLOC_END, 0x20);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 f10 m40 r20");
	cr_assert_eq(stats.unknown_frees, 1);
	cr_assert_eq(bench_contradictions(&bench), 1);
}
