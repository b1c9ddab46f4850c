/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The order engine with children that count in a PID namespace of their own. */
#include <criterion/criterion.h>

#include "tests/unit/order_fixture.h"

#define CHILD (PID + 5)
#define OTHER (PID + 6)
#define FORK  UINT64_C(4096)

static void open_all(void)
{
	open_kernel();
	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench.base += 10;
	add_image();
}

static void open_without_kernel(void)
{
	close_bench();
	open_image();
}

/* The slot of a child that calls itself `pid`, and its thread. */
static struct mt_writer claim(uint64_t at, int32_t pid, uint64_t fork_number, uint32_t *proc)
{
	struct mt_proc_birth birth = {
		.pid = pid,
		.tid = pid,
		.fork_number = fork_number,
		.parent = *proc,
		.parent_generation = image.producer.procs[*proc - 1].generation,
		.stamp = bench.base + at,
	};

	*proc = mt_producer_claim_proc(&image.producer, &birth);
	return bench_thread(&image, *proc, pid);
}

static void marked(struct mt_writer *writer, uint64_t at, uint64_t fork_number, int32_t pid)
{
	bench_put(&bench, &image, writer, at, MT_REC_FORK_DONE, fork_number, (uint64_t)pid);
}

/* A Fork or another event of perf, which does not say what a process calls itself. */
static void perf(enum mt_kev_type type, int32_t pid, int32_t parent_pid, uint64_t at)
{
	kernel(type, pid, parent_pid, at);
	bench.kernel[bench.kernel_count - 1].ns_pid = 0;
	bench.kernel[bench.kernel_count - 1].ns_tid = 0;
}

static struct mt_order_stats finish(const char *wanted)
{
	struct mt_order_stats stats = bench_finish(&bench);

	cr_assert_str_eq(bench_text(&bench), wanted, "%s", bench_text(&bench));
	cr_assert_eq(bench_contradictions(&bench), 0);
	cr_assert_eq(stats.corrupt_streams + stats.unread_streams, 0);
	return stats;
}

TestSuite(order_pidns, .init = open_all, .fini = close_bench);

Test(order_pidns, parent_says_what_it_calls_the_child)
{
	uint32_t proc = image.proc;
	struct mt_writer child;

	open_without_kernel();
	put(&one, 10, MT_REC_MALLOC, 0x10);
	child = claim(25, 1, FORK, &proc);
	put(&child, 30, MT_REC_FREE, 0x10);
	marked(&one, 28, FORK, CHILD);
	cr_assert_eq(finish("x0 m10 +5 f10").lost[MT_LOST_LATE], 0);
	cr_assert_eq(bench.events[3].pid, CHILD);
	cr_assert_eq(bench.events[3].tid, CHILD);
}

Test(order_pidns, parent_says_it_before_the_child_has_a_slot)
{
	uint32_t proc = image.proc;
	struct mt_writer child;

	put(&one, 10, MT_REC_MALLOC, 0x10);
	perf(MT_KEV_FORK, CHILD, PID, 20);
	marked(&one, 28, FORK, CHILD);
	bench_run(&bench);
	child = claim(40, 1, FORK, &proc);
	put(&child, 50, MT_REC_FREE, 0x10);
	bench_run(&bench);
	perf(MT_KEV_EXIT, CHILD, 0, 60);
	finish("x0 m10 +5 f10 -5");
}

/* The parent was slow to come back from fork(). */
Test(order_pidns, exit_waits_for_the_parents_word)
{
	uint32_t proc = image.proc;
	struct mt_writer child;

	perf(MT_KEV_FORK, CHILD, PID, 20);
	child = claim(25, 1, FORK, &proc);
	put(&child, 30, MT_REC_MALLOC, 0x10);
	perf(MT_KEV_EXIT, CHILD, 0, 40);
	for (int i = 0; i < 8; i++)
		mt_order_round(bench.order);
	marked(&one, 50, FORK, CHILD);
	cr_assert_eq(finish("x0 +5 m10 -5").lost[MT_LOST_LATE], 0);
}

Test(order_pidns, grandchildren_are_known_by_who_forked_them_and_when)
{
	uint32_t proc = image.proc, next;
	struct mt_writer child, grandchild;

	perf(MT_KEV_FORK, CHILD, PID, 20);
	child = claim(25, 1, FORK, &proc);
	next = proc;
	put(&child, 30, MT_REC_MALLOC, 0x10);
	marked(&one, 28, FORK, CHILD);
	perf(MT_KEV_FORK, OTHER, CHILD, 40);
	grandchild = claim(45, 2, 2 * FORK, &next);
	marked(&child, 48, 2 * FORK, 2);
	put(&grandchild, 50, MT_REC_FREE, 0x10);
	perf(MT_KEV_EXIT, OTHER, 0, 60);
	perf(MT_KEV_EXIT, CHILD, 0, 70);
	finish("x0 +5 m10 +6 f10 -6 -5");
	cr_assert_eq(bench.events[4].pid, OTHER);
}

/* Each is the first process of a namespace, one within the other. */
Test(order_pidns, the_same_number_in_two_namespaces)
{
	uint32_t proc = image.proc, next;
	struct mt_writer child, grandchild;

	kernel(MT_KEV_FORK, CHILD, PID, 20);
	bench.kernel[bench.kernel_count - 1].ns_pid = 1;
	kernel(MT_KEV_FORK, OTHER, CHILD, 40);
	bench.kernel[bench.kernel_count - 1].ns_pid = 1;
	child = claim(25, 1, FORK, &proc);
	next = proc;
	put(&child, 30, MT_REC_MALLOC, 0x10);
	grandchild = claim(45, 1, 2 * FORK, &next);
	put(&grandchild, 50, MT_REC_FREE, 0x10);
	kernel(MT_KEV_EXIT, OTHER, 0, 60);
	kernel(MT_KEV_EXIT, CHILD, 0, 70);
	finish("x0 +5 m10 +6 f10 -6 -5");
	cr_assert_eq(bench.events[2].pid, CHILD);
}

Test(order_pidns, raw_clone_is_the_only_child_it_can_be)
{
	uint32_t proc = image.proc;
	struct mt_writer child;

	perf(MT_KEV_FORK, CHILD, PID, 20);
	child = claim(25, 1, 0, &proc);
	put(&child, 30, MT_REC_MALLOC, 0x10);
	perf(MT_KEV_EXIT, CHILD, 0, 40);
	finish("x0 +5 m10 -5");
}

/* Two records of a child that /proc does not have. */
static void open_with_unfindable(void)
{
	uint32_t proc = image.proc;
	struct mt_writer child;

	open_without_kernel();
	child = claim(25, 1, FORK, &proc);
	put(&child, 30, MT_REC_MALLOC, 0x10);
	put(&child, 31, MT_REC_FREE, 0x10);
	put(&one, 50, MT_REC_MALLOC, 0x20);
}

Test(order_pidns, nobody_is_made_up_for_a_number_that_is_not_known)
{
	struct mt_order_stats stats;

	open_with_unfindable();
	stats = finish("x0 m20");
	cr_assert_eq(stats.lost[MT_LOST_LATE], 2);
}

/* Nor can its parent say it any more, whose Exit does not wait for that. */
Test(order_pidns, killed_parent_tells_of_nobody)
{
	struct mt_order_stats stats;

	open_with_unfindable();
	bench_run(&bench);
	mt_order_process_ended(bench.order, PID, 9, true);
	stats = finish("x0 m20 -0");
	cr_assert_eq(stats.lost[MT_LOST_LATE], 2);
}
