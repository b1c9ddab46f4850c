/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Puts the records of the sources together: gives final events in order of
 * time, each mapping once, Exec before its mappings, Exit once a process.
 *
 * perf tells less than eBPF: that a thread has ended but not that it was the
 * last, that a new image begins but not its file. So processes are counted
 * here, and an Exec made of perf records waits for the first mapping of the
 * image, which is its file. Where eBPF gives the Exec and perf the mappings,
 * those wait for it.
 *
 * Owner and threads: one owner, not shared.
 */
#ifndef MT_SIDECAR_KERNEL_MERGE_H
#define MT_SIDECAR_KERNEL_MERGE_H

#include "sidecar/kernel_queue.h"

struct mt_kmerge_process;

#define MT_KMERGE_BUCKETS 1024u

struct mt_kmerge {
	/* Which source each kind of event is taken from. */
	bool process_from_perf;
	bool exec_maps_from_perf;
	bool later_maps_from_perf;
	bool perf_is_global; /* perf's records of processes that are not followed are passed over */
	struct mt_kmerge_process *buckets[MT_KMERGE_BUCKETS];
	struct mt_kqueue held; /* mappings that wait for the Exec of their image */
	mt_kernel_event_fn *on_event;
	void *context;
	int given;
};

void mt_kmerge_fini(struct mt_kmerge *merge);

/* The process that is followed first, and how many threads it has. */
int mt_kmerge_follow(struct mt_kmerge *merge, pid_t pid, unsigned int threads);

/*
 * Gives what the first `count` records of the sorted queue mean. Returns the
 * number of events given.
 */
int mt_kmerge_run(struct mt_kmerge *merge, const struct mt_kqueue *queue, size_t count,
		  mt_kernel_event_fn *on_event, void *context);

#endif
