/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "sidecar/coverage.h"

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
	mt_coverage_finish(coverage);
	cr_assert_eq(totals_of(coverage).tracked, 2);
	cr_assert_eq(totals_of(coverage).untracked, 1);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 1);
	cr_assert_str_eq(list[0].path, "/b");
	cr_assert_eq(list[0].reason, MT_UNTRACKED_STATIC);
	cr_assert_eq(mt_coverage_alive(coverage), 0);
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
	mt_coverage_finish(coverage);
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
	mt_coverage_finish(coverage);
	cr_assert_eq(totals_of(coverage).untracked, 0);
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
	mt_coverage_finish(coverage);
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
	mt_coverage_finish(coverage);
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
	mt_coverage_finish(coverage);
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
	mt_coverage_finish(coverage);
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
	mt_coverage_finish(coverage);
	cr_assert_eq(totals_of(coverage).untracked, 3000);
	cr_assert_eq(mt_coverage_untracked(coverage, &list), 1000);
	mt_coverage_free(coverage);
}
