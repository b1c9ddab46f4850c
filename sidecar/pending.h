/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The events of the kernel, and those that take their place, on their way into the merge.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_PENDING_H
#define MT_SIDECAR_PENDING_H

#include "sidecar/order_impl.h"

/* pending_queue.c: the kernel's events in the order of their times */
/* add_later: the queue is in use by the merge; it comes in with take_inbox, in the next round. */
void mt_pending_add_later(struct mt_order *order, const struct mt_kev *event, uint64_t stamp);
void mt_pending_take_inbox(struct mt_order *order);
void mt_pending_add(struct mt_order *order, const struct mt_kev *event, uint64_t stamp,
		    struct mt_image *image);
void mt_pending_remove_head(struct mt_order *order);
void mt_pending_free(struct mt_order *order);

/* pending.c: the kernel's events in the merge, and the gates that wait for them */
/* Applies the head of the queue. False: it has to wait for streams. */
bool mt_pending_apply(struct mt_order *order);
/* Asks for an Exit now, in the place of the kernel's. */
void mt_pending_ask_exit(struct mt_order *order, int32_t pid, int status, bool status_known);
/* A thread came back from fork(). */
void mt_fork_done(struct mt_order *order, struct mt_reader *reader, const struct mt_rec *rec);
/* Opens gates whose event came, and asks for the events that will not come. */
void mt_gates_check(struct mt_order *order);
void mt_gates_open(struct mt_order *order);

#endif
