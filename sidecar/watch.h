/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Notices the end of processes where the kernel's events do not tell it: a pidfd for each process
 * that the order engine knows, polled.
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

/*
 * Takes up processes that are new to the order engine, tells it of those that have ended. Returns
 * how many are alive.
 */
size_t mt_watch_poll(struct mt_watch *watch, struct mt_order *order);

#endif
