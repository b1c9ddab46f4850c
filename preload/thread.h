/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which stream a thread writes to: threads that are new, processes that were forked.
 */
#ifndef MT_PRELOAD_THREAD_H
#define MT_PRELOAD_THREAD_H

#include <stdint.h>

#include "preload/guard.h"

/*
 * Makes sure that the thread has a slot of this very process: claims a process slot when this is a
 * child that has none, and a thread slot. Returns 0, or MT_TURN_LOST + the cause when there is none
 * to be had; the writer then says where the loss is to be counted. Holds no lock; the guard is the
 * caller's.
 */
int mt_thread_adopt(struct mt_thread *thread);

/* Finds where the thread control block holds the tid. Called once, by attach. */
void mt_thread_find_tid(void);

/* The calling thread's id and process id, by a system call only where nothing else tells. */
int32_t mt_thread_tid(const struct mt_thread *thread);

#endif
