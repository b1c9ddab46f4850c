/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Job control: stops together with the command and goes on together with it.
 *
 * Threads: the main one.
 */
#ifndef MT_SIDECAR_JOB_H
#define MT_SIDECAR_JOB_H

#include <stdbool.h>
#include <sys/types.h>

/* True when `pid` is `root` or one of its descendants, by /proc. */
bool mt_job_is_in_tree(pid_t pid, pid_t root);

/* Is it there, and no zombie? */
bool mt_job_lives(pid_t pid);

/* The parent of a process, by /proc; 0 when it is not known. */
pid_t mt_job_parent(pid_t pid);

/*
 * The command `child` has stopped: stops the calling process. Returns when both go on, whoever of
 * them was continued.
 */
void mt_job_stop_with(pid_t child);

#endif
