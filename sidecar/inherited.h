/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the process was given by its caller and the sidecar changes for itself: signal mask,
 * dispositions, resource limits, umask, interval timers, parent-death signal, whether it is a
 * subreaper, and which of the descriptors 0 to 2 are closed. The command gets all of it as it was.
 * What the sidecar leaves alone (nice, oom_score_adj, the session, the process group) passes to the
 * command by itself.
 *
 * Threads: before others are started; restore in a forked child.
 */
#ifndef MT_SIDECAR_INHERITED_H
#define MT_SIDECAR_INHERITED_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>

#define MT_TIMERS (ITIMER_PROF + 1) /* ITIMER_REAL is 0 */

struct mt_inherited {
	sigset_t mask;
	bool ignored[NSIG]; /* SIG_IGN at entry */
	struct rlimit limits[RLIMIT_NLIMITS];
	bool limit_known[RLIMIT_NLIMITS];
	mode_t umask;
	struct itimerval timers[MT_TIMERS]; /* exec keeps them */
	int parent_death_signal;
	int child_subreaper; /* 1: orphans below it become its children; exec keeps that */
};

/* Reads it all; puts /dev/null into closed descriptors 0 to 2, for this process alone. */
void mt_inherited_save(struct mt_inherited *ret_inherited);

/* Sets what the sidecar needs: signals blocked, SIGPIPE and SIGXFSZ ignored, limits raised. */
void mt_inherited_change(const struct mt_inherited *inherited);

/* In the child: all but the signal mask. Async-signal-safe. */
void mt_inherited_restore(const struct mt_inherited *inherited);

/* In the child, right before its exec: the signal mask. */
void mt_inherited_unblock(const struct mt_inherited *inherited);

#endif
