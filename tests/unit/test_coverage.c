/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "sidecar/coverage.h"

/* Long after all that happens in a test. */
#define END_NS (UINT64_C(3600) * 1000000000)
#define MS_NS  UINT64_C(1000000)

static void event(struct mt_coverage *coverage, int type, pid_t pid, uint64_t time_ns,
		  uint32_t flags, const char *path)
{
	struct mt_kev kev = { .type = type,
			      .pid = pid,
			      .tid = pid,
			      .time_ns = time_ns,
			      .exec_flags = flags,
			      .path = path,
			      .path_len = path ? (uint32_t)strlen(path) : 0 };

	mt_coverage_kernel_event(coverage, &kev);
}

static struct mt_coverage_totals totals_of(struct mt_coverage *coverage)
{
	struct mt_coverage_totals totals;

	mt_coverage_totals(coverage, &totals);
	return totals;
}

Test(coverage, exec_chain_of_one_process)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;

	/* Three images of one pid: the middle one never says hello. */
	mt_coverage_add_process(coverage, 10);
	event(coverage, MT_KEV_EXEC, 10, 100, MT_EXEC_KNOWN, "/a");
	mt_coverage_hello(coverage, 10, 150);
	event(coverage, MT_KEV_EXEC, 10, 200, MT_EXEC_KNOWN | MT_EXEC_NO_INTERP, "/b");
	event(coverage, MT_KEV_EXEC, 10, 300, MT_EXEC_KNOWN, "/c");
	mt_coverage_hello(coverage, 10, 350);
	event(coverage, MT_KEV_EXIT, 10, 400, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).tracked, 2);
	cr_assert_eq(totals_of(coverage).untracked, 1);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 1);
	cr_assert_str_eq(list[0].path, "/b");
	cr_assert_eq(list[0].reason, MT_UNTRACKED_STATIC);
	cr_assert_eq(mt_coverage_alive(coverage), 0);
	mt_coverage_free(coverage);
}

/* In manual use: of the first image no exec is told, and it met us before we came. */
Test(coverage, image_that_runs_already)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;

	mt_coverage_add_image(coverage, 10, "/a");
	mt_coverage_add_image(coverage, 11, "/b");
	mt_coverage_add_image(coverage, 12, "/c");
	mt_coverage_hello_in_vain(coverage, 10, 50, MT_UNTRACKED_ALLOCATOR);
	mt_coverage_hello(coverage, 11, 60);
	mt_coverage_hello_in_vain(coverage, 12, 70, MT_UNTRACKED_ALLOCATOR);
	event(coverage, MT_KEV_EXEC, 12, 100, MT_EXEC_KNOWN, "/d");
	mt_coverage_hello(coverage, 12, 150);
	event(coverage, MT_KEV_EXIT, 12, 200, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).tracked, 2);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 2);
	cr_assert_str_eq(list[0].path, "/c");
	cr_assert_eq(list[0].time_ns, 70);
	cr_assert_str_eq(list[1].path, "/a");
	cr_assert_eq(list[1].reason, MT_UNTRACKED_ALLOCATOR);
	mt_coverage_free(coverage);
}

Test(coverage, hellos_ahead_of_the_kernels_events)
{
	struct mt_coverage *coverage = mt_coverage_new(true);

	mt_coverage_hello(coverage, 20, 150);
	mt_coverage_hello(coverage, 20, 250);
	event(coverage, MT_KEV_FORK, 20, 90, 0, NULL);
	event(coverage, MT_KEV_EXEC, 20, 100, MT_EXEC_KNOWN, "/a");
	event(coverage, MT_KEV_EXEC, 20, 200, MT_EXEC_KNOWN, "/b");
	event(coverage, MT_KEV_EXIT, 20, 300, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).untracked, 0);
	cr_assert_eq(totals_of(coverage).tracked, 2);
	mt_coverage_free(coverage);
}

Test(coverage, hello_read_after_the_exit)
{
	struct mt_coverage *coverage = mt_coverage_new(true);

	event(coverage, MT_KEV_FORK, 30, 90, 0, NULL);
	event(coverage, MT_KEV_EXEC, 30, 100, MT_EXEC_KNOWN, "/a");
	event(coverage, MT_KEV_EXIT, 30, 200, 0, NULL);
	cr_assert_eq(totals_of(coverage).untracked, 1);
	mt_coverage_hello(coverage, 30, 150);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).untracked, 0);
	mt_coverage_free(coverage);
}

Test(coverage, hello_in_vain_read_after_the_exit)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;

	event(coverage, MT_KEV_EXEC, 30, 100, MT_EXEC_KNOWN, "/bin/waits");
	event(coverage, MT_KEV_MAPPING, 30, 101, 0, "/lib/libmemtrack-preload.so");
	event(coverage, MT_KEV_EXIT, 30, 200, 0, NULL);
	mt_coverage_hello_in_vain(coverage, 30, 150, MT_UNTRACKED_WAITED);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).untracked, 1);
	cr_assert_eq(totals_of(coverage).by_reason[MT_UNTRACKED_WAITED], 1);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 1);
	cr_assert_eq(list[0].reason, MT_UNTRACKED_WAITED);
	cr_assert_str_eq(list[0].path, "/bin/waits");
	mt_coverage_free(coverage);
}

/* Of so many the list has no room for the last. */
/* The image that lacked room for what it was given; a hello that nobody said is nobody's. */
Test(coverage, hello_undone)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;

	event(coverage, MT_KEV_EXEC, 30, 100, MT_EXEC_KNOWN, "/bin/tracked");
	mt_coverage_hello(coverage, 30, 150);
	event(coverage, MT_KEV_EXEC, 30, 200, MT_EXEC_KNOWN, "/bin/full");
	mt_coverage_hello(coverage, 30, 250);
	mt_coverage_hello_undone(coverage, 30, 251, MT_UNTRACKED_REFUSED);
	mt_coverage_hello_undone(coverage, 31, 250, MT_UNTRACKED_REFUSED);
	cr_assert_eq(totals_of(coverage).tracked, 2);
	mt_coverage_hello_undone(coverage, 30, 250, MT_UNTRACKED_REFUSED);
	mt_coverage_hello_undone(coverage, 30, 250, MT_UNTRACKED_REFUSED);
	event(coverage, MT_KEV_EXIT, 30, 300, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).tracked, 1);
	cr_assert_eq(totals_of(coverage).untracked, 1);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 1);
	cr_assert_eq(list[0].reason, MT_UNTRACKED_REFUSED);
	cr_assert_str_eq(list[0].path, "/bin/full");
	mt_coverage_free(coverage);
}

Test(coverage, hello_read_after_the_exit_of_one_that_is_not_listed)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;
	const pid_t last = 1500;
	size_t listed;

	for (pid_t pid = 1; pid <= last; pid++) {
		event(coverage, MT_KEV_EXEC, pid, 100, MT_EXEC_KNOWN, "/a");
		event(coverage, MT_KEV_EXIT, pid, 200, 0, NULL);
	}
	listed = mt_coverage_untracked(coverage, &list);
	cr_assert_lt(listed, (size_t)last);
	mt_coverage_hello(coverage, last, 150);
	mt_coverage_hello_in_vain(coverage, last - 1, 150, MT_UNTRACKED_WAITED);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).tracked, 1);
	cr_assert_eq(totals_of(coverage).untracked, (uint64_t)last - 1);
	cr_assert_eq(totals_of(coverage).by_reason[MT_UNTRACKED_WAITED], 1);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), listed);
	mt_coverage_free(coverage);
}

Test(coverage, loaded_but_of_another_run)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;

	event(coverage, MT_KEV_EXEC, 30, 100, MT_EXEC_KNOWN, NULL);
	event(coverage, MT_KEV_MAPPING, 30, 101, 0, "/lib/libmemtrack-preload.so");
	event(coverage, MT_KEV_EXIT, 30, 200, 0, NULL);
	event(coverage, MT_KEV_EXEC, 31, 100, MT_EXEC_KNOWN, NULL);
	event(coverage, MT_KEV_MAPPING, 31, 101, 0, "/lib/libc.so.6");
	event(coverage, MT_KEV_EXIT, 31, 200, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 2);
	cr_assert_eq(list[0].reason, MT_UNTRACKED_ELSEWHERE);
	cr_assert_eq(list[1].reason, MT_UNTRACKED_UNKNOWN);
	mt_coverage_free(coverage);
}

Test(coverage, reasons)
{
	static const struct {
		uint32_t flags;
		enum mt_untracked_reason reason;
	} cases[] = {
		{ 0, MT_UNTRACKED_UNKNOWN },
		{ MT_EXEC_KNOWN, MT_UNTRACKED_UNKNOWN },
		{ MT_EXEC_KNOWN | MT_EXEC_SECURE | MT_EXEC_NO_PRELOAD, MT_UNTRACKED_SECURE },
		{ MT_EXEC_KNOWN | MT_EXEC_FOREIGN | MT_EXEC_NO_INTERP, MT_UNTRACKED_FOREIGN },
		{ MT_EXEC_KNOWN | MT_EXEC_NO_PRELOAD, MT_UNTRACKED_ENVIRONMENT },
	};
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		event(coverage, MT_KEV_EXEC, 40 + (pid_t)i, 100, cases[i].flags, NULL);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		event(coverage, MT_KEV_EXIT, 40 + (pid_t)i, 200, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), sizeof(cases) / sizeof(cases[0]));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(list[i].reason, cases[i].reason, "case %zu", i);
	mt_coverage_free(coverage);
}

Test(coverage, own_allocator_and_no_room_are_reasons)
{
	struct mt_coverage *coverage = mt_coverage_new(true);

	event(coverage, MT_KEV_EXEC, 50, 100, MT_EXEC_KNOWN, "/a");
	mt_coverage_hello_in_vain(coverage, 50, 150, MT_UNTRACKED_ALLOCATOR);
	/* The reason is of that image, not of the next one. */
	event(coverage, MT_KEV_EXEC, 50, 200, MT_EXEC_KNOWN | MT_EXEC_NO_PRELOAD, NULL);
	event(coverage, MT_KEV_EXIT, 50, 300, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).by_reason[MT_UNTRACKED_ALLOCATOR], 1);
	cr_assert_eq(totals_of(coverage).by_reason[MT_UNTRACKED_ENVIRONMENT], 1);
	mt_coverage_free(coverage);
}

Test(coverage, without_kernel_events_nothing_is_known)
{
	struct mt_coverage *coverage = mt_coverage_new(false);
	const struct mt_untracked *list;

	mt_coverage_hello(coverage, 60, 100);
	mt_coverage_explain(coverage, 61, "/static", MT_UNTRACKED_STATIC);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_not(totals_of(coverage).known);
	cr_assert_eq(totals_of(coverage).tracked, 1);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 1);
	cr_assert_str_eq(list[0].path, "/static");
	mt_coverage_free(coverage);
}

Test(coverage, who_is_alive_at_the_end)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	pid_t pids[1];

	mt_coverage_add_process(coverage, 70);
	event(coverage, MT_KEV_FORK, 71, 100, 0, NULL);
	event(coverage, MT_KEV_FORK, 72, 110, 0, NULL);
	event(coverage, MT_KEV_EXIT, 70, 120, 0, NULL);
	cr_assert_eq(mt_coverage_alive(coverage), 2);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(mt_coverage_alive_list(coverage, pids, 1), 2);
	mt_coverage_free(coverage);
}

Test(coverage, lists_are_bounded_and_all_is_counted)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;
	pid_t pid;

	for (pid = 1000; pid < 4000; pid++) {
		event(coverage, MT_KEV_FORK, pid, 100, 0, NULL);
		event(coverage, MT_KEV_EXEC, pid, 110, MT_EXEC_KNOWN, "/x");
		event(coverage, MT_KEV_EXIT, pid, 120, 0, NULL);
	}
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).untracked, 3000);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 1000);
	mt_coverage_free(coverage);
}

static void exit_as(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns, int status)
{
	struct mt_kev kev = { .type = MT_KEV_EXIT,
			      .pid = pid,
			      .tid = pid,
			      .time_ns = time_ns,
			      .exit_status = status };

	mt_coverage_kernel_event(coverage, &kev);
}

/* An image without a hello: its flags, what it mapped, and how and when it ended. */
struct unheard {
	const char *name;
	uint32_t flags;
	const char *mappings[4];
	int status; /* of wait(2); -1: not known */
	uint64_t lived_ns;
	enum mt_untracked_reason reason;
};

Test(coverage, killed_before_the_library_was_loaded)
{
	static const char ours[] = "/usr/lib/memtrack/libmemtrack-preload.so";
	static const struct unheard cases[] = {
		{ "killed in exec",
		  MT_EXEC_KNOWN,
		  { "/a", "/ld.so" },
		  9,
		  5 * MS_NS,
		  MT_UNTRACKED_ENDED },
		{ "killed in the loader",
		  MT_EXEC_KNOWN,
		  { "/a", "/ld.so", ours, "/libc" },
		  9,
		  5 * MS_NS,
		  MT_UNTRACKED_ENDED },
		{ "no mappings known", MT_EXEC_KNOWN, { NULL }, 15, 5 * MS_NS, MT_UNTRACKED_ENDED },
		{ "killed much later",
		  MT_EXEC_KNOWN,
		  { "/a", "/ld.so" },
		  9,
		  5000 * MS_NS,
		  MT_UNTRACKED_UNKNOWN },
		{ "ran and ended by itself",
		  MT_EXEC_KNOWN,
		  { "/a", "/ld.so", ours },
		  0,
		  5 * MS_NS,
		  MT_UNTRACKED_ELSEWHERE },
		{ "loaded without ours",
		  MT_EXEC_KNOWN,
		  { "/a", "/ld.so", "/libc" },
		  9,
		  5 * MS_NS,
		  MT_UNTRACKED_UNKNOWN },
		{ "another reason",
		  MT_EXEC_KNOWN | MT_EXEC_NO_PRELOAD,
		  { "/a", "/ld.so" },
		  9,
		  5 * MS_NS,
		  MT_UNTRACKED_ENVIRONMENT },
		{ "perf: gone at once", 0, { "/a", "/ld.so" }, -1, 5 * MS_NS, MT_UNTRACKED_ENDED },
		{ "perf: gone later",
		  0,
		  { "/a", "/ld.so" },
		  -1,
		  500 * MS_NS,
		  MT_UNTRACKED_UNKNOWN },
		{ "perf: loaded without ours",
		  0,
		  { "/a", "/ld.so", "/libc" },
		  -1,
		  5 * MS_NS,
		  MT_UNTRACKED_UNKNOWN },
		{ "perf: static", 0, { "/a" }, -1, 5 * MS_NS, MT_UNTRACKED_UNKNOWN },
	};
	const size_t case_count = sizeof(cases) / sizeof(cases[0]);
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;
	size_t i, j;

	for (i = 0; i < case_count; i++) {
		pid_t pid = 80 + (pid_t)i;

		event(coverage, MT_KEV_EXEC, pid, 100, cases[i].flags, NULL);
		for (j = 0; j < 4 && cases[i].mappings[j]; j++)
			event(coverage, MT_KEV_MAPPING, pid, 101 + j, 0, cases[i].mappings[j]);
		exit_as(coverage, pid, 100 + cases[i].lived_ns, cases[i].status);
	}
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), case_count);
	for (i = 0; i < case_count; i++)
		cr_assert_eq(list[i].reason, cases[i].reason, "%s: %d", cases[i].name,
			     (int)list[i].reason);
	cr_assert_eq(totals_of(coverage).not_loaded, 4);
	cr_assert_eq(totals_of(coverage).untracked, case_count - 4);
	mt_coverage_free(coverage);
}

Test(coverage, a_late_hello_takes_an_early_end_back)
{
	struct mt_coverage *coverage = mt_coverage_new(true);

	event(coverage, MT_KEV_EXEC, 110, 100, MT_EXEC_KNOWN, "/a");
	exit_as(coverage, 110, 200, 9);
	cr_assert_eq(totals_of(coverage).not_loaded, 1);
	mt_coverage_hello(coverage, 110, 150);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).not_loaded, 0);
	cr_assert_eq(totals_of(coverage).untracked, 0);
	mt_coverage_free(coverage);
}

Test(coverage, the_recording_ended_before_it_started)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;

	event(coverage, MT_KEV_EXEC, 120, END_NS - 10 * MS_NS, MT_EXEC_KNOWN, "/late");
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 1);
	cr_assert_eq(list[0].reason, MT_UNTRACKED_STARTING);
	cr_assert_eq(totals_of(coverage).not_loaded, 1);
	cr_assert_eq(totals_of(coverage).untracked, 0);
	mt_coverage_free(coverage);

	coverage = mt_coverage_new(true);
	event(coverage, MT_KEV_EXEC, 120, END_NS - 5000 * MS_NS, MT_EXEC_KNOWN, "/early");
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).by_reason[MT_UNTRACKED_UNKNOWN], 1);
	cr_assert_eq(totals_of(coverage).untracked, 1);
	mt_coverage_free(coverage);
}

Test(coverage, hello_in_vain_ahead_of_its_exec)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;

	mt_coverage_add_process(coverage, 10);
	event(coverage, MT_KEV_EXEC, 10, 100, MT_EXEC_KNOWN, "/a");
	mt_coverage_hello_in_vain(coverage, 10, 250, MT_UNTRACKED_ALLOCATOR);
	event(coverage, MT_KEV_EXEC, 10, 200, MT_EXEC_KNOWN, "/b");
	event(coverage, MT_KEV_EXEC, 10, 300, MT_EXEC_KNOWN, "/c");
	event(coverage, MT_KEV_EXIT, 10, 400, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 3);
	cr_assert_eq(list[0].reason, MT_UNTRACKED_UNKNOWN);
	cr_assert_eq(list[1].reason, MT_UNTRACKED_ALLOCATOR);
	cr_assert_eq(list[2].reason, MT_UNTRACKED_UNKNOWN);
	mt_coverage_free(coverage);
}

/* Known late: the process may run the next image by then, or be gone, and another have its number.
 */
Test(coverage, image_that_was_tracked_in_part)
{
	struct mt_coverage *coverage = mt_coverage_new(true);
	const struct mt_untracked *list;

	mt_coverage_add_process(coverage, 10);
	event(coverage, MT_KEV_EXEC, 10, 100, MT_EXEC_KNOWN, "/a");
	mt_coverage_hello(coverage, 10, 150);
	event(coverage, MT_KEV_EXEC, 10, 200, MT_EXEC_KNOWN, "/b");
	mt_coverage_in_part(coverage, 10, "/a", MT_UNTRACKED_DEEPBIND);
	mt_coverage_hello(coverage, 10, 250);
	event(coverage, MT_KEV_EXIT, 10, 300, 0, NULL);
	mt_coverage_in_part(coverage, 10, NULL, MT_UNTRACKED_DLMOPEN);
	mt_coverage_hello(coverage, 10, 450); /* that of /c, ahead of its exec */
	event(coverage, MT_KEV_FORK, 10, 400, 0, NULL);
	event(coverage, MT_KEV_EXEC, 10, 410, MT_EXEC_KNOWN, "/c");
	event(coverage, MT_KEV_EXIT, 10, 500, 0, NULL);
	mt_coverage_finish(coverage, END_NS);
	cr_assert_eq(totals_of(coverage).tracked, 1);
	cr_assert_eq(totals_of(coverage).untracked, 2);
	cr_assert_eq(totals_of(coverage).by_reason[MT_UNTRACKED_DEEPBIND], 1);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 2);
	cr_assert_str_eq(list[0].path, "/a");
	cr_assert_eq(list[0].reason, MT_UNTRACKED_DEEPBIND);
	cr_assert_null(list[1].path);
	cr_assert_eq(list[1].reason, MT_UNTRACKED_DLMOPEN);
	mt_coverage_free(coverage);
}

Test(coverage, every_reason_has_a_name_and_a_text_of_its_own)
{
	for (int one = 0; one < MT_UNTRACKED_REASONS; one++)
		for (int other = 0; other < one; other++) {
			cr_assert_str_neq(mt_untracked_reason_name(one),
					  mt_untracked_reason_name(other));
			cr_assert_str_neq(mt_untracked_reason_text(one),
					  mt_untracked_reason_text(other));
		}
}
