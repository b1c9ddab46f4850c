/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the child of a fork() that a signal handler made while its thread wrote a record: when the
 * handler returns, the child goes on with that write, at a place that is its parent's. So until the
 * write is over, the child has memory of its own in the place of the segment. What it wrote there
 * is then recorded again, as the child's.
 *
 * A handler that forks by the raw system call is not helped.
 */
#ifndef MT_PRELOAD_COVER_H
#define MT_PRELOAD_COVER_H

#include "preload/guard.h"

/* In the child, before its handler returns. What cannot be had leaves the child untracked. */
void mt_cover_begin(struct mt_thread *thread);

/* Records what that write was of, or counts its loss. The segment is back. */
void mt_cover_record(struct mt_thread *thread, enum mt_rec_kind kind, uint64_t addr, uint64_t size);

/* When the write is over: the segment is back. The guard is at MT_GUARD_WRITE. */
void mt_cover_end(struct mt_thread *thread);

#endif
