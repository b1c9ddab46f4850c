/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The order engine, fed with streams made by hand. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "tests/unit/order_fixture.h"

TestSuite(order, .init = open_image, .fini = close_bench);

Test(order, records_come_out_by_stamp)
{
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 40, MT_REC_FREE, 0x10);
	put(&two, 20, MT_REC_CALLOC, 0x20);
	put(&two, 30, MT_REC_ALIGNED_ALLOC, 0x30);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 c20 a30 f10");
	cr_assert_eq(bench.events[1].tid, PID);
	cr_assert_eq(bench.events[2].tid, PID + 1);
	cr_assert_eq(bench.events[1].timestamp_ns, bench.base + 10);
	cr_assert_eq(bench.events[1].size, 8);
}

/* What is seen in a round may depend on what other streams published since they were read in it. */
Test(order, what_a_round_sees_first_is_merged_in_the_next)
{
	struct mt_order_stats stats;

	put(&one, 5, MT_REC_MALLOC, 0x8);
	put(&two, 6, MT_REC_FREE, 0x8);
	bench_run(&bench);
	put(&two, 20, MT_REC_MALLOC, 0x20);
	mt_order_round(bench.order);
	put(&one, 10, MT_REC_MALLOC, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m8 f8 m10 m20");
	cr_assert_eq(stats.late, 0);
}

Test(order, free_stamped_before_its_allocation_is_parked)
{
	struct mt_order_stats stats;

	put(&one, 11, MT_REC_MALLOC, 0x10);
	put(&two, 10, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10");
	cr_assert_eq(stats.parked, 1);
	cr_assert_eq(stats.unknown_frees, 0);
	cr_assert_eq(stats.late, 0);
}

Test(order, equal_stamps_are_tried_both_ways)
{
	for (uint64_t at = 10; at < 60; at += 10) {
		put(&one, at, MT_REC_MALLOC, 0x10);
		put(&two, at, MT_REC_FREE, 0x10);
	}
	bench_finish(&bench);
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(bench.count, 11);
}

Test(order, swapped_frees_of_one_address)
{
	struct mt_order_stats stats;
	struct mt_writer three = bench_thread(&image, image.proc, PID + 2);

	/* True order: A1 F1 A2 F2; F2 was stamped before A1. */
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&two, 20, MT_REC_FREE, 0x10);
	put(&one, 30, MT_REC_MALLOC, 0x10);
	put(&three, 5, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m10 f10");
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
}

Test(order, allocation_stamped_before_the_free_is_parked)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 30, MT_REC_FREE, 0x10);
	put(&two, 20, MT_REC_MALLOC, 0x10);
	put(&two, 90, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m10 f10");
	cr_assert_eq(stats.parked, 1);
}

Test(order, double_free_is_written_once_flagged)
{
	struct mt_order_stats stats;
	const struct mt_order_anomaly *list;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_FREE, 0x10);
	put(&one, 30, MT_REC_FREE, 0x10);
	put(&one, 100000, MT_REC_MALLOC, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 f10 m10");
	cr_assert_eq(stats.unknown_frees, 1);
	cr_assert_eq(mt_order_anomalies(bench.order, &list), 1);
	cr_assert_eq(list[0].frame, 0);
	cr_assert_eq(list[0].index, 3);
	cr_assert_eq(list[0].reason, MT_ANOMALY_UNKNOWN_FREE);
}

Test(order, allocation_over_a_live_block_is_flagged_and_heals)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_MALLOC, 0x10);
	put(&one, 200000, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 m10 f10");
	cr_assert_eq(stats.live_allocs, 1);
	cr_assert_eq(stats.unknown_frees, 0);
}

Test(order, parked_record_expires_in_idle_rounds)
{
	uint64_t start;

	put(&one, 10, MT_REC_FREE, 0x10);
	start = mt_clock_monotonic_ns();
	while (mt_clock_monotonic_ns() - start < UINT64_C(5000000000)) {
		struct mt_order_stats stats;

		mt_order_round(bench.order);
		mt_order_stats(bench.order, &stats);
		if (stats.unknown_frees == 1)
			return;
	}
	cr_assert_fail("a free of an unknown block is still held after 5 s of idle rounds");
}

/* The merge stops in front of a late record for a round, and comes to the allocation in the next.
 */
Test(order, parked_record_does_not_expire_before_what_is_visible)
{
	struct mt_writer three = bench_thread(&image, image.proc, PID + 2);
	struct mt_order_stats stats;

	put(&two, 10, MT_REC_FREE, 0x10);
	mt_order_round(bench.order);
	put(&one, 11, MT_REC_MALLOC, 0x10);
	mt_order_round(bench.order);
	usleep(5000);
	put(&three, 5, MT_REC_MALLOC, 0x20);
	mt_order_round(bench.order);
	stats = bench_finish(&bench);
	cr_assert_eq(stats.unknown_frees, 0);
	cr_assert_eq(stats.parked, 1);
	cr_assert_str_eq(bench_text(&bench), "x0 m20 m10 f10");
}

Test(order, mappings_of_the_program_have_no_liveness)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MUNMAP, 0x1000);
	put(&one, 20, MT_REC_MMAP, 0x1000);
	put(&one, 30, MT_REC_MMAP, 0x1000);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 U1000 P1000 P1000");
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
}

Test(order, late_stamps_are_clamped)
{
	struct mt_order_stats stats;

	put(&one, 1000, MT_REC_MALLOC, 0x10);
	bench_run(&bench);
	put(&two, 500, MT_REC_MALLOC, 0x20);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 m20");
	cr_assert_eq(bench.events[2].timestamp_ns, bench.base + 1000);
	cr_assert_eq(stats.late, 1);
}

Test(order, fork_marker_gives_the_child_its_parents_blocks)
{
	struct mt_proc_birth birth = { .parent = image.proc, .pid = PID + 5, .tid = PID + 5 };
	struct mt_writer child;
	struct mt_order_stats stats;
	uint32_t proc;

	birth.parent_generation = image.producer.procs[image.proc - 1].generation;
	birth.fork_number = 7;
	birth.stamp = bench.base + 35;
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 11, MT_REC_MALLOC, 0x20);
	put(&one, 20, MT_REC_FORK, 7);
	proc = mt_producer_claim_proc(&image.producer, &birth);
	child = bench_thread(&image, proc, PID + 5);
	put(&child, 40, MT_REC_FREE, 0x10);
	put(&child, 50, MT_REC_MALLOC, 0x20);
	bench_put(&bench, &image, &one, 30, MT_REC_FORK_DONE, 7, PID + 5);
	put(&one, 33, MT_REC_FREE, 0x10);
	bench_run(&bench);
	mt_order_process_ended(bench.order, PID + 5, 0, true);
	bench_run(&bench);
	mt_order_process_ended(bench.order, PID, 0, true);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 m20 +5 f10 f10 m20 -5 -0");
	cr_assert_eq(stats.inherited_ends, 1);
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(bench.events[3].aux, PID);
}

Test(order, child_of_a_raw_clone_is_forked_where_it_first_records)
{
	struct mt_proc_birth birth = { .parent = image.proc, .pid = PID + 5, .tid = PID + 5 };
	struct mt_writer child;

	birth.parent_generation = image.producer.procs[image.proc - 1].generation;
	birth.stamp = bench.base + 35;
	put(&one, 10, MT_REC_MALLOC, 0x10);
	child = bench_thread(&image, mt_producer_claim_proc(&image.producer, &birth), PID + 5);
	put(&child, 40, MT_REC_FREE, 0x10);
	put(&one, 50, MT_REC_FREE, 0x10);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 +5 f10 f10");
	cr_assert_eq(bench_contradictions(&bench), 0);
}

/* Who forked first waits for its parent's word, while its raw child's first records are there. */
Test(order, raw_child_of_a_child_that_waits_is_no_child_of_the_root)
{
	struct mt_proc_birth birth = { .parent = image.proc, .pid = PID + 5, .tid = PID + 5 };
	struct mt_writer child, raw;

	birth.parent_generation = image.producer.procs[image.proc - 1].generation;
	birth.fork_number = 7;
	birth.stamp = bench.base + 35;
	put(&one, 20, MT_REC_FORK, 7);
	birth.parent = mt_producer_claim_proc(&image.producer, &birth);
	child = bench_thread(&image, birth.parent, PID + 5);
	put(&child, 40, MT_REC_MALLOC, 0x10);
	birth.parent_generation = image.producer.procs[birth.parent - 1].generation;
	birth.pid = birth.tid = PID + 6;
	birth.fork_number = 0;
	birth.stamp = bench.base + 45;
	raw = bench_thread(&image, mt_producer_claim_proc(&image.producer, &birth), PID + 6);
	put(&raw, 50, MT_REC_FREE, 0x10);
	bench_run(&bench);
	bench_put(&bench, &image, &one, 60, MT_REC_FORK_DONE, 7, PID + 5);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 +5 m10 +6 f10");
	cr_assert_eq(bench.events[3].aux, PID + 5);
	cr_assert_eq(bench_contradictions(&bench), 0);
}

Test(order, new_image_of_a_process_starts_with_nothing)
{
	struct bench_image second;
	struct mt_writer writer;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	bench.base += 1000;
	bench_image(&bench, &second, PID, 0);
	writer = bench_thread(&second, second.proc, PID);
	bench_put(&bench, &second, &writer, 10, MT_REC_MALLOC, 0x10, 8);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 x0 m10");
	cr_assert_eq(bench_contradictions(&bench), 0);
}

Test(order, drained_threads_give_their_slots_back)
{
	for (int i = 0; i < 20000; i++) {
		struct mt_writer writer = bench_thread(&image, image.proc, PID + 10);

		put(&writer, 100 + (uint64_t)i * 2, MT_REC_MALLOC, 0x100);
		put(&writer, 101 + (uint64_t)i * 2, MT_REC_FREE, 0x100);
		if (i % 4 == 0)
			mt_order_round(bench.order);
	}
	bench_finish(&bench);
	cr_assert_eq(bench.count, 40001);
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_lt(image.producer.header->thread_bump, 64);
	cr_assert_lt(image.producer.header->bump, 64);
}

static struct mt_writer claim_at(int32_t tid, uint64_t tcb, uint64_t stamp)
{
	struct mt_writer writer;

	cr_assert(mt_writer_claim(&image.producer, &writer, image.proc, tid, tcb, stamp));
	return writer;
}

/* Threads that follow each other use one control block; slots are not found in order of claims. */
Test(order, later_claim_of_a_control_block_is_the_one_that_lives)
{
	struct mt_writer older = claim_at(PID + 10, 0x7000, 100);
	struct mt_writer newer = claim_at(PID + 11, 0x7000, 200);

	put(&older, 110, MT_REC_MALLOC, 0x100);
	put(&newer, 210, MT_REC_MALLOC, 0x200);
	bench_run(&bench);
	put(&newer, 220, MT_REC_FREE, 0x200);
	put(&newer, 230, MT_REC_FREE, 0x100);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m100 m200 f200 f100");
}

Test(order, wrong_kind_stops_that_stream_alone)
{
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, (enum mt_rec_kind)99, 0x10);
	put(&one, 30, MT_REC_FREE, 0x10);
	put(&two, 40, MT_REC_MALLOC, 0x20);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 m20");
	cr_assert_eq(stats.corrupt_streams, 1);
}

Test(order, stamp_from_the_future_stops_that_stream_alone)
{
	struct mt_order_stats stats;

	put(&one, UINT64_C(1) << 60, MT_REC_MALLOC, 0x10);
	put(&two, 40, MT_REC_MALLOC, 0x20);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m20");
	cr_assert_eq(stats.corrupt_streams, 1);
	cr_assert_eq(bench.events[1].timestamp_ns, bench.base + 40);
}

/* Another thread's slot says that its records are where the first one's are. */
Test(order, chunk_is_in_one_stream_only)
{
	struct mt_thread_slot *threads = image.producer.threads;
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	bench_run(&bench);
	threads[two.slot - 1].first_chunk = threads[one.slot - 1].first_chunk;
	put(&one, 20, MT_REC_FREE, 0x10);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10");
	cr_assert_eq(stats.corrupt_streams, 1);
}

Test(order, lost_records_are_counted_by_process)
{
	struct mt_order_stats stats;
	const struct mt_order_process *list;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	mt_writer_lost(&image.producer, &one, MT_LOST_POLICY);
	mt_writer_lost(&image.producer, &one, MT_LOST_POLICY);
	mt_writer_lost(&image.producer, &two, MT_LOST_TIMEOUT);
	stats = bench_finish(&bench);
	cr_assert_eq(stats.lost[MT_LOST_POLICY], 2);
	cr_assert_eq(stats.lost[MT_LOST_TIMEOUT], 1);
	cr_assert_eq(mt_order_processes(bench.order, &list), 1);
	cr_assert_eq(list[0].lost[MT_LOST_POLICY], 2);
	cr_assert_eq(list[0].pid, PID);
	cr_assert_eq(list[0].images, 1);
}

TestSuite(order_kernel, .init = open_kernel, .fini = close_bench);

Test(order_kernel, exec_comes_before_its_image_and_exit_last)
{
	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench.base += 10;
	bench_image(&bench, &image, PID, 0);
	one = bench_thread(&image, image.proc, PID);
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 30, MT_REC_FREE, 0x10);
	bench_run(&bench);
	put(&one, 40, MT_REC_MALLOC, 0x20);
	/* By a clock that is half a microsecond off the Exit is before the last record. */
	kernel(MT_KEV_THREAD_EXIT, PID, 0, 38);
	kernel(MT_KEV_EXIT, PID, 0, 39);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10 m20 -0");
}

Test(order_kernel, fork_comes_before_the_childs_events)
{
	struct mt_proc_birth birth = { .pid = PID + 5, .tid = PID + 5, .fork_number = 1 };
	struct mt_writer child;

	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench.base += 10;
	bench_image(&bench, &image, PID, 0);
	one = bench_thread(&image, image.proc, PID);
	birth.parent = image.proc;
	birth.parent_generation = 1;
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_FORK, 1);
	bench_run(&bench);
	kernel(MT_KEV_FORK, PID + 5, PID, 60);
	child = bench_thread(&image, mt_producer_claim_proc(&image.producer, &birth), PID + 5);
	put(&child, 55, MT_REC_FREE, 0x10);
	bench_put(&bench, &image, &one, 58, MT_REC_FORK_DONE, 1, PID + 5);
	put(&one, 59, MT_REC_FREE, 0x10);
	bench_run(&bench);
	kernel(MT_KEV_EXIT, PID + 5, 0, 80);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 +5 f10 f10 -5");
	cr_assert_eq(bench_contradictions(&bench), 0);
}

Test(order_kernel, child_that_only_execs)
{
	struct bench_image second;
	struct mt_writer writer;

	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench.base += 10;
	bench_image(&bench, &image, PID, 0);
	one = bench_thread(&image, image.proc, PID);
	put(&one, 10, MT_REC_MALLOC, 0x10);
	bench_run(&bench);
	kernel(MT_KEV_FORK, PID + 5, PID, 60);
	bench.kernel[0].exec_flags = MT_EXEC_VFORK;
	kernel(MT_KEV_EXEC, PID + 5, 0, 70);
	bench.base += 80;
	bench_image(&bench, &second, PID + 5, 0);
	writer = bench_thread(&second, second.proc, PID + 5);
	bench_put(&bench, &second, &writer, 10, MT_REC_MALLOC, 0x10, 8);
	bench_run(&bench);
	kernel(MT_KEV_EXIT, PID + 5, 0, 120);
	kernel(MT_KEV_EXIT, PID, 0, 130);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 +5 x5 m10 -5 -0");
}

Test(order_kernel, lost_fork_is_made_up_after_a_while)
{
	struct mt_proc_birth birth = { .pid = PID + 5, .tid = PID + 5, .fork_number = 1 };
	struct mt_writer child;
	uint64_t start;

	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench.base += 10;
	bench_image(&bench, &image, PID, 0);
	one = bench_thread(&image, image.proc, PID);
	birth.parent = image.proc;
	birth.parent_generation = 1;
	birth.stamp = bench.base + 50;
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_FORK, 1);
	child = bench_thread(&image, mt_producer_claim_proc(&image.producer, &birth), PID + 5);
	put(&child, 55, MT_REC_FREE, 0x10);
	start = mt_clock_monotonic_ns();
	while (mt_clock_monotonic_ns() - start < UINT64_C(2000000000)) {
		struct mt_order_stats stats;

		mt_order_round(bench.order);
		mt_order_stats(bench.order, &stats);
		if (stats.events == 4)
			break;
	}
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 +5 f10");
}

Test(order_kernel, mapping_keeps_its_path_and_place)
{
	kernel(MT_KEV_EXEC, PID, 0, 0);
	kernel(MT_KEV_MAPPING, PID, 0, 1);
	bench.kernel[1].addr = 0x400000;
	bench.kernel[1].path = "/bin/true and more";
	bench.kernel[1].path_len = 9;
	bench.base += 10;
	bench_image(&bench, &image, PID, 0);
	one = bench_thread(&image, image.proc, PID);
	put(&one, 10, MT_REC_MALLOC, 0x10);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 M400000 m10");
}
