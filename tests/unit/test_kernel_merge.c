// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel_merge.h"

#include <criterion/criterion.h>
#include <string.h>

#define GIVEN_MAX 32

struct given {
	size_t count;
	struct mt_kev events[GIVEN_MAX];
	char paths[GIVEN_MAX][32];
};

static struct mt_kmerge merge;
static struct mt_kqueue queue;
static struct given given;

static void on_event(void *context, const struct mt_kev *event)
{
	struct given *to = context;

	cr_assert_lt(to->count, GIVEN_MAX);
	cr_assert_lt(event->path_len, sizeof(to->paths[0]));
	to->events[to->count] = *event;
	memcpy(to->paths[to->count], event->path, event->path_len);
	to->count++;
}

static void push(enum mt_krecord_kind kind, int type, uint64_t time, int pid, int tid, int parent,
		 const char *path)
{
	const struct mt_kev event = {
		.type = type,
		.time_ns = time,
		.pid = pid,
		.tid = tid,
		.parent_pid = parent,
		.parent_tid = parent,
		.path = path,
		.path_len = path ? (uint32_t)strlen(path) : 0,
	};

	mt_kqueue_push(&queue, kind, &event);
}

static void run(void)
{
	mt_kqueue_sort(&queue);
	mt_kmerge_run(&merge, &queue, queue.count, on_event, &given);
	mt_kqueue_drop(&queue, queue.count);
}

/* The events that came, as letters: F E X (exit) T (thread) M. */
static void expect(const char *types)
{
	static const char letters[] = "?FEXTMUL";
	char got[GIVEN_MAX + 1] = "";
	size_t i;

	for (i = 0; i < given.count; i++)
		got[i] = letters[given.events[i].type];
	cr_assert_str_eq(got, types);
}

static void setup(void)
{
	memset(&merge, 0, sizeof(merge));
	memset(&given, 0, sizeof(given));
}

static void teardown(void)
{
	mt_kmerge_fini(&merge);
	mt_kqueue_fini(&queue);
}

static void perf_only(void)
{
	merge.process_from_perf = merge.exec_maps_from_perf = merge.later_maps_from_perf = true;
	cr_assert_eq(mt_kmerge_follow(&merge, 10, 1), 0);
}

TestSuite(kernel_merge, .init = setup, .fini = teardown);

Test(kernel_merge, perf_exec_waits_for_the_file_of_its_image)
{
	perf_only();
	push(MT_KREC_PERF_EXEC, MT_KEV_EXEC, 100, 10, 10, 0, NULL);
	run();
	expect("");
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 110, 10, 10, 0, "/bin/a");
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 120, 10, 10, 0, "/ld.so");
	run();
	expect("EMM");
	cr_assert_str_eq(given.paths[0], "/bin/a");
	cr_assert_eq(given.events[0].time_ns, 110);
}

Test(kernel_merge, perf_exit_comes_with_the_last_thread)
{
	perf_only();
	push(MT_KREC_PERF_FORK, 0, 100, 10, 11, 10, NULL);
	push(MT_KREC_PERF_FORK, 0, 101, 10, 12, 10, NULL);
	push(MT_KREC_PERF_EXIT, 0, 102, 10, 10, 0, NULL);
	push(MT_KREC_PERF_EXIT, 0, 103, 10, 12, 0, NULL);
	push(MT_KREC_PERF_EXIT, 0, 104, 10, 11, 0, NULL);
	run();
	expect("TTTX");
	cr_assert_eq(given.events[3].exit_status, -1);
}

Test(kernel_merge, perf_end_between_an_exec_and_its_mappings_is_that_of_the_events)
{
	perf_only();
	push(MT_KREC_PERF_EXEC, MT_KEV_EXEC, 100, 10, 10, 0, NULL);
	push(MT_KREC_PERF_EXIT, 0, 101, 10, 10, 0, NULL);
	run();
	expect("EU");
	cr_assert_eq(given.events[0].exec_flags, 0);
	cr_assert_eq(given.events[1].pid, 10);
	/* Its number is another one's later. */
	push(MT_KREC_PERF_FORK, 0, 110, 10, 10, 9, NULL);
	push(MT_KREC_PERF_EXIT, 0, 111, 10, 10, 0, NULL);
	run();
	expect("EUFTX");
}

Test(kernel_merge, global_perf_goes_on_with_the_image_after_that)
{
	perf_only();
	merge.perf_is_global = true;
	push(MT_KREC_PERF_EXEC, MT_KEV_EXEC, 100, 10, 10, 0, NULL);
	push(MT_KREC_PERF_EXIT, 0, 101, 10, 10, 0, NULL);
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 110, 10, 10, 0, "/bin/a");
	push(MT_KREC_PERF_FORK, 0, 120, 11, 11, 10, NULL);
	push(MT_KREC_PERF_EXIT, 0, 130, 10, 10, 0, NULL);
	run();
	expect("UEMFTX");
	cr_assert_str_eq(given.paths[1], "/bin/a");
}

/* The second end is the process's own, even if its image never came to be mapped. */
Test(kernel_merge, global_perf_takes_the_second_end_for_the_process)
{
	perf_only();
	merge.perf_is_global = true;
	push(MT_KREC_PERF_EXEC, MT_KEV_EXEC, 100, 10, 10, 0, NULL);
	push(MT_KREC_PERF_EXIT, 0, 101, 10, 10, 0, NULL);
	push(MT_KREC_PERF_EXIT, 0, 102, 10, 10, 0, NULL);
	run();
	expect("UETX");
}

Test(kernel_merge, records_of_two_rings_are_given_in_order_of_time)
{
	perf_only();
	push(MT_KREC_PERF_EXIT, 0, 130, 11, 11, 0, NULL);
	push(MT_KREC_PERF_FORK, 0, 120, 11, 11, 10, NULL);
	run();
	expect("FTX");
	cr_assert_eq(given.events[0].parent_pid, 10);
}

Test(kernel_merge, global_perf_records_of_strangers_are_passed_over)
{
	perf_only();
	merge.perf_is_global = true;
	push(MT_KREC_PERF_FORK, 0, 100, 21, 21, 20, NULL);
	push(MT_KREC_PERF_EXEC, MT_KEV_EXEC, 101, 21, 21, 0, NULL);
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 102, 21, 21, 0, "/bin/b");
	push(MT_KREC_PERF_EXIT, 0, 103, 21, 21, 0, NULL);
	push(MT_KREC_PERF_FORK, 0, 104, 11, 11, 10, NULL);
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 105, 11, 11, 0, "/lib/c");
	run();
	expect("FM");
	cr_assert_eq(given.events[1].pid, 11);
}

Test(kernel_merge, exec_mappings_of_perf_follow_the_exec_of_ebpf)
{
	merge.exec_maps_from_perf = merge.later_maps_from_perf = true;
	cr_assert_eq(mt_kmerge_follow(&merge, 10, 1), 0);
	push(MT_KREC_PERF_EXEC, MT_KEV_EXEC, 100, 10, 10, 0, NULL);
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 110, 10, 10, 0, "/bin/a");
	run(); /* the image is half made when the rings are read */
	expect("");
	push(MT_KREC_EVENT, MT_KEV_EXEC, 120, 10, 10, 0, "/bin/a");
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 130, 10, 10, 0, "/lib/later");
	run();
	expect("EMM");
	cr_assert_eq(given.events[1].time_ns, 120);
	cr_assert_str_eq(given.paths[1], "/bin/a");
	cr_assert_str_eq(given.paths[2], "/lib/later");
}

Test(kernel_merge, exec_mappings_that_ebpf_gives_are_not_given_twice)
{
	merge.later_maps_from_perf = true;
	cr_assert_eq(mt_kmerge_follow(&merge, 10, 1), 0);
	push(MT_KREC_PERF_EXEC, MT_KEV_EXEC, 100, 10, 10, 0, NULL);
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 110, 10, 10, 0, "/bin/a");
	push(MT_KREC_EVENT, MT_KEV_EXEC, 120, 10, 10, 0, "/bin/a");
	push(MT_KREC_EVENT, MT_KEV_MAPPING, 120, 10, 10, 0, "/bin/a");
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 130, 10, 10, 0, "/lib/later");
	run();
	expect("EMM");
}

Test(kernel_merge, an_image_that_is_never_complete_leaves_nothing)
{
	merge.exec_maps_from_perf = merge.later_maps_from_perf = true;
	cr_assert_eq(mt_kmerge_follow(&merge, 10, 1), 0);
	push(MT_KREC_PERF_EXEC, MT_KEV_EXEC, 100, 10, 10, 0, NULL);
	push(MT_KREC_PERF_MMAP, MT_KEV_MAPPING, 110, 10, 10, 0, "/bin/a");
	push(MT_KREC_EVENT, MT_KEV_EXIT, 120, 10, 10, 0, NULL);
	run();
	expect("X");
	cr_assert_eq(merge.held.count, 0);
}

Test(kernel_queue, what_is_kept_keeps_its_path)
{
	struct mt_kev event;

	push(MT_KREC_EVENT, MT_KEV_EXEC, 3, 1, 1, 0, "/three");
	push(MT_KREC_EVENT, MT_KEV_EXIT, 2, 1, 1, 0, NULL);
	push(MT_KREC_EVENT, MT_KEV_EXEC, 1, 1, 1, 0, "/one");
	mt_kqueue_sort(&queue);
	mt_kqueue_drop(&queue, 1);
	cr_assert_eq(queue.count, 2);
	event = mt_kqueue_event(&queue, &queue.records[1]);
	cr_assert_eq(event.path_len, 6);
	cr_assert_eq(memcmp(event.path, "/three", 6), 0);
	mt_kqueue_fini(&queue);
}
