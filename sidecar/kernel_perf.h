/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * perf records: task, exec and executable mappings. One event and one small
 * ring a CPU.
 *
 * The events are of one process and inherited by what it forks, which works for
 * one's own processes at kernel.perf_event_paranoid 2, but costs each fork some
 * 8 us for each CPU. On a machine of many CPUs they are of all processes, where
 * that is allowed, and whoever reads them has to take out those of the tree.
 * That is not the first choice because then others can fill the rings.
 *
 * Owner and threads: one owner, not shared.
 */
#ifndef MT_SIDECAR_KERNEL_PERF_H
#define MT_SIDECAR_KERNEL_PERF_H

#include "sidecar/kernel_queue.h"

struct mt_kperf;

/* Whether the caller may open such events at all. Returns 0 or a negative errno. */
int mt_kperf_probe(void);

/*
 * Opens for all threads of `pid` and what they fork, or for all processes. `tasks`: FORK and EXIT
 * records are wanted too.
 */
int mt_kperf_open(pid_t pid, bool tasks, enum mt_kernel_perf_scope scope,
		  struct mt_kperf **ret_perf);

/* Whether records of other processes are among those that are read. */
bool mt_kperf_is_global(const struct mt_kperf *perf);

/* How many threads the process had then. */
unsigned int mt_kperf_threads(const struct mt_kperf *perf);

/* NULL is accepted. */
void mt_kperf_close(struct mt_kperf *perf);

/* Adds the descriptors to an epoll set. */
int mt_kperf_poll_add(const struct mt_kperf *perf, int epoll_fd);

/* Moves all that is in the rings into the queue, as MT_KREC_PERF_*. */
void mt_kperf_read(struct mt_kperf *perf, struct mt_kqueue *queue);

#endif
