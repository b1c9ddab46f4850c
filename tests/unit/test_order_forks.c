/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The order engine at forks: what the child has of its parent's blocks, whatever was under way. */
#include <criterion/criterion.h>

#include "tests/unit/order_fixture.h"

#define CHILD (PID + 5)

static void open_all(void)
{
	open_kernel();
	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench.base += 10;
	add_image();
}

/* Forks at `at`: the kernel's word, and the child's stream. */
static struct mt_writer forked(uint64_t at, int32_t pid, int32_t parent_pid, uint32_t *proc)
{
	struct mt_proc_birth birth = {
		.pid = pid,
		.tid = pid,
		.fork_number = 1,
		.parent = *proc,
		.parent_generation = image.producer.procs[*proc - 1].generation,
		.stamp = bench.base + at + 1,
	};

	kernel(MT_KEV_FORK, pid, parent_pid, at);
	*proc = mt_producer_claim_proc(&image.producer, &birth);
	return bench_thread(&image, *proc, pid);
}

/* Finishes; nothing may contradict itself, nothing was flagged. */
static struct mt_order_stats finish(const char *wanted)
{
	struct mt_order_stats stats = bench_finish(&bench);

	cr_assert_str_eq(bench_text(&bench), wanted);
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(stats.unknown_frees + stats.live_allocs, 0);
	return stats;
}

TestSuite(order_forks, .init = open_all, .fini = close_bench);

Test(order_forks, both_reallocate_the_block_they_share)
{
	uint32_t proc = image.proc;
	struct mt_writer child;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	child = forked(20, CHILD, PID, &proc);
	put(&one, 30, MT_REC_REALLOC_BEGIN, 0x10);
	put(&child, 31, MT_REC_REALLOC_BEGIN, 0x10);
	put(&child, 40, MT_REC_REALLOC_END, 0x20);
	put(&one, 41, MT_REC_REALLOC_END, 0x30);
	put(&child, 50, MT_REC_REALLOC_BEGIN, 0x20);
	put(&child, 51, MT_REC_REALLOC_END, 0x10);
	put(&one, 60, MT_REC_FREE, 0x30);
	put(&child, 61, MT_REC_FREE, 0x10);
	finish("x0 m10 +5 r10>20 r10>30 r20>10 f30 f10");
	cr_assert_eq(bench.events[3].pid, CHILD);
	cr_assert_eq(bench.events[4].pid, PID);
}

/* The child's memory may have the block or not; nobody in it knows where it went. */
Test(order_forks, another_thread_reallocates_meanwhile)
{
	uint32_t proc = image.proc;
	struct mt_order_stats stats;
	struct mt_writer child;

	put(&two, 10, MT_REC_MALLOC, 0x10);
	put(&two, 11, MT_REC_MALLOC, 0x20);
	put(&two, 15, MT_REC_REALLOC_BEGIN, 0x10);
	child = forked(20, CHILD, PID, &proc);
	put(&child, 30, MT_REC_MALLOC, 0x10);
	put(&child, 31, MT_REC_FREE, 0x10);
	put(&two, 40, MT_REC_REALLOC_END, 0x30);
	put(&one, 50, MT_REC_MALLOC, 0x10);
	put(&two, 60, MT_REC_FREE, 0x30);
	stats = finish("x0 m10 m20 +5 m10 f10 r10>30 m10 f30");
	cr_assert_eq(stats.inherited_ends, 1);
}

/* By its stamp the free comes before the fork, the block's allocation behind: the child has it not.
 */
Test(order_forks, a_free_is_parked_meanwhile)
{
	uint32_t proc = image.proc;
	struct mt_writer child;

	put(&two, 15, MT_REC_FREE, 0x10);
	child = forked(20, CHILD, PID, &proc);
	put(&one, 25, MT_REC_MALLOC, 0x10);
	put(&child, 30, MT_REC_MALLOC, 0x10);
	put(&child, 40, MT_REC_FREE, 0x10);
	finish("x0 +5 m10 f10 m10 f10");
	cr_assert_eq(bench.events[3].pid, PID);
	cr_assert_eq(bench.events[4].pid, CHILD);
}

/* An early free of the child's own, of an address that is live in the parent. */
Test(order_forks, parked_records_are_their_process_own)
{
	uint32_t proc = image.proc;
	struct mt_writer child, second;
	struct mt_order_stats stats;

	put(&one, 10, MT_REC_MALLOC, 0x20);
	child = forked(20, CHILD, PID, &proc);
	second = bench_thread(&image, proc, CHILD + 1);
	put(&one, 29, MT_REC_MALLOC, 0x10);
	put(&second, 30, MT_REC_FREE, 0x10);
	put(&child, 31, MT_REC_MALLOC, 0x10);
	put(&one, 40, MT_REC_FREE, 0x10);
	put(&child, 50, MT_REC_FREE, 0x20);
	put(&one, 51, MT_REC_FREE, 0x20);
	stats = finish("x0 m20 +5 m10 m10 f10 f10 f20 f20");
	cr_assert_eq(stats.parked, 1);
	cr_assert_eq(bench.events[4].pid, CHILD);
	cr_assert_eq(bench.events[5].tid, CHILD + 1);
}

Test(order_forks, grandchildren_have_what_is_left_of_it)
{
	uint32_t proc = image.proc;
	struct mt_order_stats stats;
	struct mt_writer child, grandchild;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 11, MT_REC_MALLOC, 0x20);
	child = forked(20, CHILD, PID, &proc);
	put(&child, 30, MT_REC_FREE, 0x10);
	put(&child, 31, MT_REC_MALLOC, 0x30);
	bench_run(&bench);
	grandchild = forked(40, CHILD + 1, CHILD, &proc);
	put(&grandchild, 50, MT_REC_MALLOC, 0x10);
	put(&grandchild, 51, MT_REC_REALLOC_BEGIN, 0x20);
	put(&grandchild, 52, MT_REC_REALLOC_END, 0x40);
	put(&grandchild, 53, MT_REC_FREE, 0x30);
	put(&one, 60, MT_REC_FREE, 0x10);
	put(&one, 61, MT_REC_FREE, 0x20);
	put(&child, 62, MT_REC_FREE, 0x20);
	stats = finish("x0 m10 m20 +5 f10 m30 +6 m10 r20>40 f30 f10 f20 f20");
	cr_assert_eq(stats.inherited_ends, 0);
}

/* Nothing is to come for it, and others do not wait for that. */
Test(order_forks, a_second_slot_of_a_process_holds_nothing_up)
{
	uint32_t proc = image.proc;
	struct mt_proc_birth again = {
		.pid = CHILD, .tid = CHILD, .parent = 1, .stamp = bench.base + 22
	};
	struct mt_writer child = forked(20, CHILD, PID, &proc);

	put(&child, 30, MT_REC_MALLOC, 0x10);
	bench_run(&bench);
	cr_assert_neq(mt_producer_claim_proc(&image.producer, &again), 0);
	bench_run(&bench);
	kernel(MT_KEV_EXIT, CHILD, 0, 40);
	put(&one, 50, MT_REC_MALLOC, 0x20);
	bench_run(&bench);
	cr_assert(mt_order_process_done(bench.order, CHILD));
	finish("x0 +5 m10 -5 m20");
}

/* Whose that is, nobody knows; there was memory for it. */
Test(order_forks, what_a_second_slot_holds_is_counted)
{
	uint32_t proc = image.proc;
	struct mt_proc_birth again = {
		.pid = CHILD, .tid = CHILD, .parent = 1, .stamp = bench.base + 22
	};
	struct mt_writer child = forked(20, CHILD, PID, &proc), second;
	struct mt_order_stats stats;

	put(&child, 30, MT_REC_MALLOC, 0x10);
	bench_run(&bench);
	second = bench_thread(&image, mt_producer_claim_proc(&image.producer, &again), CHILD);
	put(&second, 40, MT_REC_MALLOC, 0x20);
	put(&second, 41, MT_REC_FREE, 0x20);
	stats = finish("x0 +5 m10");
	cr_assert_eq(stats.lost[MT_LOST_LATE], 2);
	cr_assert_eq(stats.unread_streams, 0);
}

/* The next Fork of a child of PID's whose time is guessed. */
static void guess(int32_t pid, uint64_t at)
{
	struct mt_kev *guessed = &bench.kernel[bench.kernel_count++];

	*guessed = kernel_event(MT_KEV_FORK, pid, PID, at);
	guessed->exec_flags = MT_EXEC_GUESSED;
}

/* The two said hello in the other order than they were forked in. */
Test(order_forks, guessed_forks_stand_where_their_parent_came_back)
{
	close_bench();
	open_image();
	put(&one, 10, MT_REC_MALLOC, 0x10);
	bench_put(&bench, &image, &one, 20, MT_REC_FORK_DONE, 1, CHILD);
	put(&one, 30, MT_REC_FREE, 0x10);
	bench_put(&bench, &image, &one, 40, MT_REC_FORK_DONE, 2, CHILD + 1);
	put(&one, 50, MT_REC_MALLOC, 0x20);
	guess(CHILD, 90);
	guess(CHILD + 1, 80);
	finish("x0 m10 +5 f10 +6 m20");
}

/* A child that said hello for each of three images, before the first was looked at. */
Test(order_forks, guesses_of_one_fork_make_one_process)
{
	close_bench();
	open_image();
	put(&one, 10, MT_REC_MALLOC, 0x10);
	bench_put(&bench, &image, &one, 20, MT_REC_FORK_DONE, 1, CHILD);
	put(&one, 30, MT_REC_MALLOC, 0x20);
	for (uint64_t i = 0; i < 3; i++)
		guess(CHILD, 80 + i);
	finish("x0 m10 +5 m20");
}

/* perf has lost sight of the process: what it forks and executes is found out as without it. */
Test(order_forks, unseen_process_tells_of_its_forks_and_images_itself)
{
	struct mt_proc_birth birth = { .pid = CHILD, .tid = CHILD, .parent = image.proc };
	struct mt_order_stats stats;
	struct bench_image second;
	struct mt_writer child, raw, next;

	birth.parent_generation = image.producer.procs[image.proc - 1].generation;
	birth.fork_number = 7;
	birth.stamp = bench.base + 35;
	kernel(MT_KEV_UNSEEN, PID, 0, 5);
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_FORK, 7);
	child = bench_thread(&image, mt_producer_claim_proc(&image.producer, &birth), CHILD);
	put(&child, 40, MT_REC_FREE, 0x10);
	bench_put(&bench, &image, &one, 30, MT_REC_FORK_DONE, 7, CHILD);
	put(&one, 33, MT_REC_FREE, 0x10);
	put(&one, 41, MT_REC_MALLOC, 0x20);
	birth.pid = birth.tid = CHILD + 1;
	birth.fork_number = 0;
	birth.stamp = bench.base + 45;
	raw = bench_thread(&image, mt_producer_claim_proc(&image.producer, &birth), CHILD + 1);
	put(&raw, 50, MT_REC_FREE, 0x20);
	put(&one, 60, MT_REC_FREE, 0x20);
	bench_run(&bench);
	bench.base += 100;
	bench_image(&bench, &second, PID, 0);
	next = bench_thread(&second, second.proc, PID);
	bench_put(&bench, &second, &next, 10, MT_REC_MALLOC, 0x30, 8);
	bench_run(&bench);
	mt_order_stats(bench.order, &stats);
	cr_assert_eq(stats.events, 11);
	kernel(MT_KEV_EXIT, PID, 0, 20);
	kernel(MT_KEV_EXIT, CHILD, 0, 21);
	finish("x0 m10 +5 f10 f10 m20 +6 f20 f20 x0 m30 -0 -5");
}

/* Without the kernel's word: PID was killed in fork(), or another thread of it executed a program.
 */
static struct mt_writer forked_by_the_killed(uint64_t stamp, int32_t pid)
{
	struct mt_proc_birth birth = { .pid = pid,
				       .tid = pid,
				       .fork_number = 4096 * (uint64_t)pid,
				       .parent = image.proc,
				       .stamp = stamp };

	birth.parent_generation = image.producer.procs[image.proc - 1].generation;
	return bench_thread(&image, mt_producer_claim_proc(&image.producer, &birth), pid);
}

static void open_without_kernel(void)
{
	close_bench();
	open_image();
	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_FORK, UINT64_C(4096) * CHILD);
}

static void finish_whole(const char *wanted)
{
	struct mt_order_stats stats = finish(wanted);

	cr_assert_eq(stats.lost[MT_LOST_LATE] + stats.unread_streams, 0);
}

Test(order_forks, child_of_a_killed_fork_stands_before_its_parents_exit)
{
	struct mt_writer child;

	open_without_kernel();
	child = forked_by_the_killed(bench.base + 25, CHILD);
	put(&child, 30, MT_REC_FREE, 0x10);
	bench_run(&bench);
	mt_order_process_ended(bench.order, PID, 9, true);
	bench_run(&bench);
	cr_assert(mt_order_process_done(bench.order, PID));
	put(&child, 50, MT_REC_MALLOC, 0x20);
	finish_whole("x0 m10 +5 f10 -0 m20");
}

/* The kernel told of the Exit, but its word of the Fork is among those that were lost. */
Test(order_forks, child_of_a_killed_fork_that_the_kernel_lost)
{
	struct mt_writer child;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	put(&one, 20, MT_REC_FORK, UINT64_C(4096) * CHILD);
	kernel(MT_KEV_LOST, PID, 0, 22);
	child = forked_by_the_killed(bench.base + 25, CHILD);
	put(&child, 30, MT_REC_FREE, 0x10);
	bench_run(&bench);
	kernel(MT_KEV_EXIT, PID, 0, 40);
	bench_run(&bench);
	put(&child, 50, MT_REC_MALLOC, 0x20);
	finish_whole("x0 m10 +5 f10 -0 m20");
}

Test(order_forks, parent_that_was_killed_behind_its_fork_has_said_so)
{
	struct mt_writer child;

	open_without_kernel();
	child = forked_by_the_killed(bench.base + 25, CHILD);
	put(&child, 30, MT_REC_FREE, 0x10);
	bench_run(&bench);
	put(&one, 27, MT_REC_MALLOC, 0x20);
	bench_put(&bench, &image, &one, 28, MT_REC_FORK_DONE, UINT64_C(4096) * CHILD, CHILD);
	mt_order_process_ended(bench.order, PID, 9, true);
	bench_run(&bench);
	finish_whole("x0 m10 m20 +5 f10 -0");
}

/* More than are asked for in a round. */
Test(order_forks, all_children_of_killed_forks_stand_before_the_exit)
{
	const struct mt_event *last;
	struct mt_order_stats stats;
	struct mt_writer child;

	open_without_kernel();
	for (int i = 0; i < 200; i++) {
		child = forked_by_the_killed(bench.base + 25, CHILD + i);
		put(&child, 30, MT_REC_FREE, 0x10);
	}
	mt_order_process_ended(bench.order, PID, 9, true);
	stats = bench_finish(&bench);
	cr_assert_eq(bench.count, 2 + 2 * 200 + 1);
	last = &bench.events[bench.count - 1];
	for (size_t i = 0; i < bench.count; i++)
		if (bench.events[i].type == MT_EVENT_EXIT)
			last = &bench.events[i];
	for (; last < bench.events + bench.count; last++)
		cr_assert_neq(last->type, MT_EVENT_FORK);
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(stats.lost[MT_LOST_LATE] + stats.unread_streams, 0);
}

Test(order_forks, child_that_is_slow_to_claim_stands_before_the_exit)
{
	struct mt_writer child;

	open_without_kernel();
	bench_run(&bench);
	mt_order_process_ended(bench.order, PID, 9, true);
	child = forked_by_the_killed(mt_clock_monotonic_ns(), CHILD);
	put(&child, mt_clock_monotonic_ns() - bench.base, MT_REC_FREE, 0x10);
	bench_run(&bench);
	finish_whole("x0 m10 +5 -0 f10");
}

/* Nobody could know of it then; what it records is there all the same. */
Test(order_forks, child_that_claims_behind_the_exit_is_read)
{
	struct mt_writer other, child;

	open_without_kernel();
	other = forked_by_the_killed(bench.base + 25, CHILD);
	put(&other, 30, MT_REC_FREE, 0x10);
	mt_order_process_ended(bench.order, PID, 9, true);
	bench_run(&bench);
	child = forked_by_the_killed(mt_clock_monotonic_ns(), CHILD + 1);
	put(&child, mt_clock_monotonic_ns() - bench.base, MT_REC_MALLOC, 0x20);
	finish_whole("x0 m10 +5 f10 -0 +6 m20");
}

Test(order_forks, fork_that_an_exec_cut_short_stands_before_it)
{
	struct bench_image second;
	struct mt_writer child, next;

	open_without_kernel();
	child = forked_by_the_killed(bench.base + 25, CHILD);
	put(&child, 30, MT_REC_FREE, 0x10);
	bench_run(&bench);
	bench.base += 100;
	bench_image(&bench, &second, PID, 0);
	next = bench_thread(&second, second.proc, PID);
	bench_put(&bench, &second, &next, 10, MT_REC_MALLOC, 0x30, 8);
	bench_run(&bench);
	finish_whole("x0 m10 +5 f10 x0 m30");
}
