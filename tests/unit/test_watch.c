/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ends that the kernel told of, and that got lost. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/watch.h"

static pid_t child_that(bool ends)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (!ends)
			pause();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	if (ends) {
		siginfo_t info;

		cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	}
	return pid;
}

Test(watch, an_end_is_missed_when_it_was_there_at_the_look_before)
{
	struct mt_watch *watch = mt_watch_new();
	pid_t lives = child_that(false), zombie = child_that(true), gone = child_that(true);
	pid_t pids[] = { lives, zombie, gone };

	cr_assert_eq(waitpid(gone, NULL, 0), gone);
	cr_assert_eq(mt_watch_missed(watch, pids, 2), 0);
	cr_assert_eq(mt_watch_missed(watch, pids, 3), 1);
	cr_assert_eq(pids[0], zombie);
	pids[0] = lives;
	pids[1] = gone;
	cr_assert_eq(mt_watch_missed(watch, pids, 2), 1);
	cr_assert_eq(pids[0], gone);
	/* The kernel told of it after all. */
	pids[0] = lives;
	cr_assert_eq(mt_watch_missed(watch, pids, 1), 0);
	kill(lives, SIGKILL);
	waitpid(lives, NULL, 0);
	waitpid(zombie, NULL, 0);
	mt_watch_free(watch);
}

Test(watch, more_than_can_be_looked_at_are_looked_at_in_part)
{
	struct mt_watch *watch = mt_watch_new();
	pid_t pids[MT_WATCH_MISSED_MAX + 1], gone = child_that(true);
	int i;

	cr_assert_eq(waitpid(gone, NULL, 0), gone);
	for (i = 0; i <= MT_WATCH_MISSED_MAX; i++)
		pids[i] = gone;
	cr_assert_eq(mt_watch_missed(watch, pids, MT_WATCH_MISSED_MAX + 1), 0);
	cr_assert_eq(mt_watch_missed(watch, pids, MT_WATCH_MISSED_MAX + 1), MT_WATCH_MISSED_MAX);
	mt_watch_free(watch);
}
