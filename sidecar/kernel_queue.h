/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Kernel records on their way from the rings to the callback: an array that is
 * sorted by time, and the bytes of their paths.
 *
 * Owner and threads: one owner, not shared.
 */
#ifndef MT_SIDECAR_KERNEL_QUEUE_H
#define MT_SIDECAR_KERNEL_QUEUE_H

#include "sidecar/kernel.h"

/* What a record is before sources are put together. */
enum mt_krecord_kind {
	MT_KREC_EVENT,	   /* event is final */
	MT_KREC_PERF_FORK, /* parent_pid == pid: a thread */
	MT_KREC_PERF_EXEC, /* a new image begins; its mappings follow */
	MT_KREC_PERF_MMAP,
	MT_KREC_PERF_EXIT, /* a thread */
};

struct mt_krecord {
	struct mt_kev event; /* event.path is not set; see path_at */
	uint64_t sequence;   /* of arrival; keeps what has the same time in order */
	size_t path_at;	     /* in the queue's bytes */
	enum mt_krecord_kind kind;
};

struct mt_kqueue {
	struct mt_krecord *records;
	size_t count, capacity;
	char *bytes;
	size_t bytes_len, bytes_capacity;
	uint64_t sequence;
	uint64_t lost;	   /* records that no memory was left for */
	uint64_t ahead_ns; /* what our clock is ahead of the kernel's: to be added to its times */
};

void mt_kqueue_fini(struct mt_kqueue *queue);

/* Copies the event and its path. No memory: the record is counted in `lost`. */
void mt_kqueue_push(struct mt_kqueue *queue, enum mt_krecord_kind kind, const struct mt_kev *event);

/* Sorts by time, then by arrival. */
void mt_kqueue_sort(struct mt_kqueue *queue);

/* Removes the first `count` records (sorted or not) and the bytes of their paths. */
void mt_kqueue_drop(struct mt_kqueue *queue, size_t count);

/* The event of a record with its path; valid until the queue changes. */
struct mt_kev mt_kqueue_event(const struct mt_kqueue *queue, const struct mt_krecord *record);

#endif
