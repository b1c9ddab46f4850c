/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * perf records of a process tree: task, exec and executable mappings. Works
 * without privileges for one's own processes at kernel.perf_event_paranoid 2.
 *
 * One event and one small ring a CPU; the event is inherited by what the
 * process forks. Owner and threads: one owner, not shared.
 */
#ifndef MT_SIDECAR_KERNEL_PERF_H
#define MT_SIDECAR_KERNEL_PERF_H

#include "sidecar/kernel_queue.h"

struct mt_kperf;

/* Whether the caller may open such events at all. Returns 0 or a negative errno. */
int mt_kperf_probe(void);

/* Opens on all threads of `pid`. `tasks`: FORK and EXIT records are wanted too. */
int mt_kperf_open(pid_t pid, bool tasks, struct mt_kperf **ret_perf);

/* How many threads the process had then. */
unsigned int mt_kperf_threads(const struct mt_kperf *perf);

/* NULL is accepted. */
void mt_kperf_close(struct mt_kperf *perf);

/* Adds the descriptors to an epoll set. */
int mt_kperf_poll_add(const struct mt_kperf *perf, int epoll_fd);

/* Moves all that is in the rings into the queue, as MT_KREC_PERF_*. */
void mt_kperf_read(struct mt_kperf *perf, struct mt_kqueue *queue);

#endif
