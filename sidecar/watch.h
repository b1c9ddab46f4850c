/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Notices the end of processes where the kernel's events do not tell it, all or some: a pidfd for
 * each, polled. Where it tells them all, those are looked for that got lost.
 *
 * Threads: the merge thread alone.
 */
#ifndef MT_SIDECAR_WATCH_H
#define MT_SIDECAR_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sidecar/order.h"

struct mt_watch;

struct mt_watch *mt_watch_new(void);
/* NULL is accepted. */
void mt_watch_free(struct mt_watch *watch);

/* Watches a process from now on, whether the order engine has met it or not. False: no memory. */
bool mt_watch_add(struct mt_watch *watch, pid_t pid);

/* Its end was told otherwise. */
void mt_watch_remove(struct mt_watch *watch, pid_t pid);

/* Takes up the processes that are new to the order engine. */
void mt_watch_meet(struct mt_watch *watch, const struct mt_order *order);

typedef void mt_watch_ended_fn(void *context, pid_t pid);

/* Tells of those that have ended, each once. Returns how many are alive. */
size_t mt_watch_poll(struct mt_watch *watch, mt_watch_ended_fn *on_ended, void *context);

/* How many processes mt_watch_missed() takes. */
#define MT_WATCH_MISSED_MAX 256

/*
 * Where the kernel tells of ends, and may have lost some: which of the processes that are alive as
 * far as it told have ended? Puts those to the front of `pids` that had ended at the call before as
 * well, so that what the kernel still has to tell has been told meanwhile. Returns how many.
 */
size_t mt_watch_missed(struct mt_watch *watch, pid_t *pids, size_t count);

#endif
