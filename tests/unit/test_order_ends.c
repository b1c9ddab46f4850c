/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The order engine at the two ends of a process's image: what belongs behind Exec, and before Exit.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "sidecar/order_impl.h"
#include "sidecar/pending.h"
#include "tests/unit/order_fixture.h"

TestSuite(order_ends, .init = open_kernel, .fini = close_bench);

/* The sidecar reads the hello when its sender was killed and the Exit written. */
Test(order_ends, hello_that_comes_after_the_exit_leaves_nothing)
{
	const struct mt_order_process *list;

	kernel(MT_KEV_EXEC, PID, 0, 0);
	kernel(MT_KEV_EXIT, PID, 0, 100);
	bench_run(&bench);
	bench.base += 50;
	bench_image(&bench, &image, PID, 0);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 -0");
	cr_assert_eq(mt_order_processes(bench.order, &list), 1);
	cr_assert_eq(list[0].events, 2);
}

Test(order_ends, records_that_come_after_the_exit_are_counted_as_lost)
{
	const struct mt_order_process *list;
	struct mt_order_stats stats;
	struct mt_writer writer;

	kernel(MT_KEV_EXEC, PID, 0, 0);
	kernel(MT_KEV_EXIT, PID, 0, 100);
	bench_run(&bench);
	bench.base += 50;
	bench_image(&bench, &image, PID, 0);
	writer = bench_thread(&image, image.proc, PID);
	bench_put(&bench, &image, &writer, 10, MT_REC_MALLOC, 0x10, 8);
	bench_put(&bench, &image, &writer, 20, MT_REC_FREE, 0x10, 8);
	stats = bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 -0");
	cr_assert_eq(stats.lost[MT_LOST_LATE], 2);
	cr_assert_eq(mt_order_processes(bench.order, &list), 1);
	cr_assert_eq(list[0].lost[MT_LOST_LATE], 2);
}

/* Nobody's Exec tells of it; the kernel's word is not asked for. */
Test(order_ends, hello_of_manual_use_that_comes_after_the_exit_makes_no_process)
{
	const struct mt_order_process *list;

	kernel(MT_KEV_EXEC, PID, 0, 0);
	kernel(MT_KEV_EXIT, PID, 0, 100);
	bench_run(&bench);
	bench.base += 50;
	bench_image(&bench, &image, PID, MT_HELLO_ROOT);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 -0");
	cr_assert_eq(mt_order_processes(bench.order, &list), 1);
}

/* Whoever says hello with a time of its own making: the kernel has told of nobody new. */
Test(order_ends, hello_from_the_future_makes_no_process)
{
	const struct mt_order_process *list;

	kernel(MT_KEV_EXEC, PID, 0, 0);
	kernel(MT_KEV_EXIT, PID, 0, 100);
	bench_run(&bench);
	bench.base += 200;
	bench_image(&bench, &image, PID, 0);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 -0");
	cr_assert_eq(mt_order_processes(bench.order, &list), 1);
}

/* The image was known in time, its Exec was lost: it is made up, and the Exit waits. */
Test(order_ends, exit_waits_for_an_exec_that_was_lost)
{
	struct mt_writer writer;

	bench_image(&bench, &image, PID, 0);
	writer = bench_thread(&image, image.proc, PID);
	bench_put(&bench, &image, &writer, 10, MT_REC_MALLOC, 0x10, 8);
	kernel(MT_KEV_EXIT, PID, 0, 100);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 -0");
}

/* The same for a Fork: what the child inherits is what the made up Exec began. */
Test(order_ends, fork_waits_for_an_exec_that_was_lost)
{
	struct mt_proc_birth birth = {
		.pid = PID + 5, .tid = PID + 5, .parent = 1, .stamp = bench.base + 21
	};
	struct mt_writer child;

	add_image();
	put(&one, 10, MT_REC_MALLOC, 0x10);
	birth.parent_generation = image.producer.procs[image.proc - 1].generation;
	kernel(MT_KEV_FORK, PID + 5, PID, 20);
	child = bench_thread(&image, mt_producer_claim_proc(&image.producer, &birth), PID + 5);
	put(&child, 30, MT_REC_FREE, 0x10);
	bench_run(&bench);
	cr_assert_str_eq(bench_text(&bench), "");
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 +5 f10");
	cr_assert_eq(bench_contradictions(&bench), 0);
}

/* It ends while rounds go on: what it wrote last is seen in a round, and taken in the next. */
Test(order_ends, thread_that_has_ended_is_read_to_its_end)
{
	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench.base += 10;
	add_image();
	put(&two, 10, MT_REC_MALLOC, 0x10);
	bench_run(&bench);
	kernel(MT_KEV_THREAD_EXIT, PID, 0, 20);
	bench.kernel[0].tid = bench.kernel[0].ns_tid = PID + 1;
	mt_order_round(bench.order);
	mt_order_round(bench.order);
	put(&two, 19, MT_REC_FREE, 0x10);
	mt_order_round(bench.order);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 m10 f10");
}

/* Their times are equal; the stamps were made in two drains, with a clock sample between. */
Test(order_ends, mapping_of_an_exec_stays_behind_it)
{
	struct mt_kev exec = kernel_event(MT_KEV_EXEC, PID, 0, 8),
		      mapping = kernel_event(MT_KEV_MAPPING, PID, 0, 8);
	struct mt_kev other = kernel_event(MT_KEV_EXEC, PID, 0, 20);

	mapping.addr = 0x400000;
	other.pid = other.tid = PID + 1;
	mt_pending_add(bench.order, &exec, bench.base + 9, NULL);
	mt_pending_add(bench.order, &other, bench.base + 20, NULL);
	mt_pending_add(bench.order, &mapping, bench.base + 5, NULL);
	bench_finish(&bench);
	cr_assert_str_eq(bench_text(&bench), "x0 M400000 x1");
}

/* The merge stands in the middle of a round: what the kernel tells waits, and so many images. */
Test(order_ends, what_waits_for_a_round_is_bounded)
{
	static char path[4096];
	struct mt_kev mapping;
	uint64_t moved_ns;
	unsigned drains = 0;

	memset(path, 'a', sizeof(path));
	close_bench();
	open_kernel();
	mapping = kernel_event(MT_KEV_MAPPING, PID, 0, 0);
	mapping.path = path;
	mapping.path_len = sizeof(path);
	bench.order->merging = true;
	while (bench.kernel_count == 0 && drains < 1000) {
		for (unsigned i = 0; i < 64; i++)
			bench.kernel[bench.kernel_count++] = mapping;
		bench.order->sink.meanwhile(bench.order, false);
		drains++;
	}
	bench.order->merging = false;
	cr_assert_gt(drains, 20);
	cr_assert_lt(bench.order->inbox_bytes, 9u << 20);
	cr_assert_eq(bench.kernel_count, 64, "what is left stays in the rings");
	cr_assert(mt_order_has_room(bench.order, &moved_ns));
	cr_assert_eq(moved_ns, 0);
	bench.order->intake_count = MT_ORDER_INTAKE_MAX;
	cr_assert_not(mt_order_has_room(bench.order, &moved_ns));
	bench_run(&bench);
	cr_assert(mt_order_has_room(bench.order, &moved_ns));
	cr_assert_eq(bench.order->inbox_bytes, 0);
	cr_assert_eq(bench.kernel_count, 0);
}

static unsigned told_past_us;
static uint32_t said_past_us;

static void note_past_us(void *context, pid_t pid, const char *path, uint32_t past_us)
{
	cr_assert_eq(context, &bench);
	cr_assert_eq(pid, PID);
	cr_assert_null(path);
	told_past_us++;
	said_past_us = past_us;
}

/* In the last moment too; of what the program can write there only what has a meaning. */
Test(order_ends, libraries_that_bind_past_us_are_told_of_once)
{
	bench.order->options.on_past_us = note_past_us;
	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench_image(&bench, &image, PID, 0);
	image.producer.header->past_us = ~(uint32_t)(MT_PAST_DEEPBIND | MT_PAST_DLMOPEN);
	bench_run(&bench);
	image.producer.header->past_us = ~(uint32_t)MT_PAST_DEEPBIND;
	kernel(MT_KEV_EXIT, PID, 0, 100);
	bench_run(&bench);
	bench_finish(&bench);
	cr_assert_eq(told_past_us, 1);
	cr_assert_eq(said_past_us, MT_PAST_DLMOPEN);
}

Test(order_ends, libraries_of_an_image_that_is_listed_are_not_told_of)
{
	bench.order->options.on_past_us = note_past_us;
	kernel(MT_KEV_EXEC, PID, 0, 0);
	bench_image(&bench, &image, PID, MT_HELLO_BYPASSED);
	image.producer.header->past_us = MT_PAST_DEEPBIND;
	bench_run(&bench);
	bench_finish(&bench);
	cr_assert_eq(told_past_us, 0);
}
