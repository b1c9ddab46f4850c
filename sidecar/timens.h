/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Time namespaces (Linux 5.6): CLOCK_MONOTONIC of a process can be ahead of the kernel's own, or
 * behind it. All times in the sidecar are by the clock that the sidecar itself reads.
 *
 * Threads: any.
 */
#ifndef MT_SIDECAR_TIMENS_H
#define MT_SIDECAR_TIMENS_H

#include <stdint.h>
#include <sys/types.h>

/* Nanoseconds that the clock of `pid` (0: ours) is ahead of the kernel's; 0 when nobody tells. */
int64_t mt_timens_ahead_ns(pid_t pid);

/* By our clock: a time that process `pid` has just read from its own. */
uint64_t mt_timens_ours(pid_t pid, uint64_t time_ns);

#endif
