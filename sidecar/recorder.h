/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The merge thread: it owns the order engine's rounds and the kernel's rings, from the start of the
 * command to the last batch. It polls: an idle run costs one short wake-up a millisecond, and the
 * programs need no call to be heard.
 *
 * Threads: new, start, join, free by the owner; the rest by any thread.
 */
#ifndef MT_SIDECAR_RECORDER_H
#define MT_SIDECAR_RECORDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "sidecar/coverage.h"
#include "sidecar/kernel.h"
#include "sidecar/order.h"

struct mt_recorder;

struct mt_recorder_options {
	struct mt_order_options order; /* drain and its context are filled in here */
	struct mt_kernel *kernel;
	struct mt_coverage *coverage;
	pid_t root;
	bool by_perf;	 /* the kernel's events are perf's, which may lose sight of processes */
	bool whole_tree; /* tell when the last process of the tree has ended (manual use) */
};

int mt_recorder_new(const struct mt_recorder_options *options, struct mt_recorder **ret_recorder);

/* Returns 0 or a negative errno. */
int mt_recorder_start(struct mt_recorder *recorder);

/* For mt_order_add_image, the results after the join. */
struct mt_order *mt_recorder_order(struct mt_recorder *recorder);

/* Readable when the thread is done, or with whole_tree when the tree has ended. */
int mt_recorder_fd(const struct mt_recorder *recorder);

/*
 * A process of the tree says hello; to be called before mt_order_add_image. Without kernel events,
 * and with perf's, this may be the first that is heard of it, so its parent is looked up.
 */
void mt_recorder_hello(struct mt_recorder *recorder, pid_t pid, uint64_t time_ns);

/*
 * The mappings that `pid` has already become events. To be called after mt_order_add_image, while
 * the program waits for its welcome: so they come after the image's Exec, and before what it does.
 */
void mt_recorder_mappings(struct mt_recorder *recorder, pid_t pid);

/* Whether another program can be taken in now: mt_order_has_room(), and likewise of mappings. */
bool mt_recorder_has_room(struct mt_recorder *recorder, uint64_t *ret_moved_ns);

/* Without kernel events: the root has ended so. */
void mt_recorder_root_ended(struct mt_recorder *recorder, int status, bool status_known);

/* Waits until what was recorded before this call has been read, at most `timeout_ms`. */
void mt_recorder_settle(struct mt_recorder *recorder, int timeout_ms);

/* Asks for the end: the root's records are waited for (bounded), recording is closed, all that was
 * published is written. */
void mt_recorder_end(struct mt_recorder *recorder);

/* True when the tree has ended (whole_tree), or the thread is done. */
bool mt_recorder_is_over(struct mt_recorder *recorder);

void mt_recorder_join(struct mt_recorder *recorder);

/* After the join. NULL is accepted. */
void mt_recorder_free(struct mt_recorder *recorder);

#endif
