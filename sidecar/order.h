/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The order engine: reads the streams of all threads of all images and the kernel's events, and
 * writes them into batches in one order in which no block is allocated while live or freed while
 * dead. The protocol, its invariants and its proof are in docs/order.md.
 *
 * It works in rounds, called by one thread (the merge):
 *   1. note the images, then their thread slots, then all published lengths;
 *   2. drain the kernel's rings (options.drain, which calls mt_order_kernel_event);
 *   3. merge by stamp over all that is visible; emit what the *previous* round covered.
 *
 * Threads: mt_order_add_image and mt_order_has_room by any thread; all else by the merge thread.
 */
#ifndef MT_SIDECAR_ORDER_H
#define MT_SIDECAR_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/control.h"
#include "common/shm.h"
#include "sidecar/kernel.h"

struct mt_order;
struct mt_encoder;

#define MT_ORDER_INTAKE_MAX 1024u

struct mt_order_options {
	struct mt_encoder *encoder;
	enum mt_counter counter;
	bool kernel_events;	     /* the kernel reports fork and exit: wait for them */
	uint64_t max_liveness_bytes; /* of the liveness bits; beyond it events go unchecked, counted
				      */
	uint64_t max_chunk_bytes;    /* --max-buffers: handed out over all images */
	uint64_t flush_ns;	     /* a partial batch goes out after this (1 s) */
	/* Drains the kernel's rings once; calls mt_order_kernel_event for what it finds. */
	int (*drain)(void *context);
	void *drain_context;
	/*
	 * A child of a process that the kernel tells nothing of (MT_KEV_UNSEEN) was found: it is
	 * such a one as well. With drain_context; NULL: nobody wants to know.
	 */
	void (*on_unseen)(void *context, pid_t pid);
	/*
	 * An image that is recorded has opened libraries that bind malloc past us: once for each
	 * image, but for those that said MT_HELLO_BYPASSED. `past_us`: of enum mt_past. `path`: of
	 * its executable, or NULL. With drain_context; NULL: nobody wants to know.
	 */
	void (*on_past_us)(void *context, pid_t pid, const char *path, uint32_t past_us);
};

/* A process of the tree: what `closed` metadata says of it. */
struct mt_order_process {
	int32_t pid;
	int32_t parent_pid;
	uint64_t first_ns, last_ns; /* of its events */
	uint64_t events;
	uint64_t lost[MT_LOST_CAUSES];
	uint32_t images; /* that registered under this pid */
	bool exited;
	int32_t exit_status; /* as of wait(2), when exited and known */
	bool status_known;
};

struct mt_order_stats {
	uint64_t records; /* read from chunks */
	uint64_t events;  /* emitted */
	uint64_t lost[MT_LOST_CAUSES];
	uint64_t late;		 /* stamps clamped */
	uint64_t parked;	 /* events that waited for their bit and got it */
	uint64_t unknown_frees;	 /* flagged: free of a block that is not known */
	uint64_t live_allocs;	 /* flagged: allocation over a live block */
	uint64_t inherited_ends; /* an inherited copy ended by an allocation over it */
	uint64_t split_reallocs;
	uint64_t dropped_begins; /* realloc begun, process gone: the block stays */
	uint64_t unchecked;	 /* liveness bits were given up there */
	uint64_t
		corrupt_streams; /* shared memory that broke its own rules: reading stopped there */
	uint64_t unread_streams; /* that there was no memory to read */
	uint64_t untranslated_tids; /* numbers of another PID namespace that could not be translated
				     */
	uint64_t kernel_lost;
};

/* A flagged event. At most MT_ANOMALIES_LISTED are kept, the first ones. */
struct mt_order_anomaly {
	uint64_t frame;	 /* batch sequence number: data frames counted from 0 */
	uint32_t index;	 /* in the frame */
	uint32_t reason; /* enum mt_anomaly_reason of common/run_meta.h */
};

int mt_order_new(const struct mt_order_options *options, struct mt_order **ret_order);
void mt_order_free(struct mt_order *order);

/*
 * A new image: `pid` from SO_PEERCRED, hello as received. Takes the segment over (the shm is
 * copied; destroyed by the merge thread when the image is gone and read).
 */
int mt_order_add_image(struct mt_order *order, const struct mt_shm *shm, pid_t pid,
		       const struct mt_hello *hello);

/*
 * Whether another image can be taken in now. While the merge stands still because the output does,
 * MT_ORDER_INTAKE_MAX images wait for it and no more. *ret_moved_ns: when the output moved last
 * (CLOCK_MONOTONIC), as far as the merge waited for it.
 */
bool mt_order_has_room(struct mt_order *order, uint64_t *ret_moved_ns);

void mt_order_kernel_event(struct mt_order *order, const struct mt_kev *event);

/* For runs without kernel events: pid has ended, as the caller learned (waitpid, pidfd). */
void mt_order_process_ended(struct mt_order *order, pid_t pid, int status, bool status_known);

/* One round. Returns how many events it emitted; 0 when idle. */
size_t mt_order_round(struct mt_order *order);

/* True when all of pid's published records were emitted and its exit was seen. */
bool mt_order_process_done(const struct mt_order *order, pid_t pid);

/* Sets `closed` in all segments: nobody starts a chunk any more. */
void mt_order_close_segments(struct mt_order *order);

/* Rounds until nothing is left, emits what is parked, submits the last batch. */
void mt_order_finish(struct mt_order *order);

void mt_order_stats(const struct mt_order *order, struct mt_order_stats *ret_stats);
size_t mt_order_processes(const struct mt_order *order, const struct mt_order_process **ret_list);
size_t mt_order_anomalies(const struct mt_order *order, const struct mt_order_anomaly **ret_list);

#endif
