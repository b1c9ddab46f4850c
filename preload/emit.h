/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes one record into the thread's stream, or counts its loss. The caller holds the guard at
 * MT_GUARD_WRITE. errno stays as it was.
 */
#ifndef MT_PRELOAD_EMIT_H
#define MT_PRELOAD_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/guard.h"
#include "preload/image.h"
#include "preload/stamp.h"

/* The rest: attach, claim slots, turn over, count. `after`: the record is of an allocation. */
__attribute__((cold)) void mt_emit_slow(struct mt_thread *thread, enum mt_rec_kind kind,
					uint64_t addr, uint64_t size, bool after);

/* Gets the thread ready to write ahead of a record; false when the record would be lost or off. */
bool mt_emit_prepare(struct mt_thread *thread);

/* Counts a call that came from a signal handler while the thread held MT_GUARD_WRITE. */
void mt_emit_interrupted(const struct mt_thread *thread);

/* Puts a mapping call, or the mark of a fork, off until the write that a handler interrupted is
 * done; or counts it. */
void mt_emit_defer(struct mt_thread *thread, enum mt_rec_kind kind, const void *start,
		   uint64_t len);

/* Does what is pending: records what was put off. Leaves the guard at `value`. */
__attribute__((cold)) void mt_emit_pending(struct mt_thread *thread, uint64_t value);

/* Ends a write: the guard becomes `value`. Whoever interrupts us from then on puts nothing off. */
static inline void mt_emit_leave(struct mt_thread *thread, uint64_t value)
{
	mt_guard_set(thread, value);
	if (mt_unlikely(mt_load_relaxed(&thread->pending) != 0))
		mt_emit_pending(thread, value);
}

/* True when the thread may write now: its slot is this process's and its chunk has room. */
static inline bool mt_emit_is_ready(const struct mt_thread *thread)
{
	return mt_likely(thread->epoch == mt_load_relaxed(&mt_wiped.epoch)) &&
	       mt_likely(thread->writer.next != thread->writer.end);
}

/*
 * Keeps what the program stores next behind the record. x86 does that by itself. Elsewhere it takes
 * the release by which a block is handed on; with --order=strict a plain store is enough.
 */
static inline void mt_emit_order(void)
{
#if defined(__aarch64__)
	if (mt_unlikely(mt_image.stamp_mode != MT_STAMP_COUNTER))
		__asm__ volatile("dmb ishst" ::: "memory");
#endif
}

/* For what happens before the program's call: frees, begins of a realloc. */
static inline void mt_emit_before(struct mt_thread *thread, enum mt_rec_kind kind,
				  const void *block, uint64_t size)
{
	if (mt_likely(mt_emit_is_ready(thread)))
		mt_writer_put(&thread->writer, mt_stamp(thread->stamp_mode), (uintptr_t)block, size,
			      kind);
	else
		mt_emit_slow(thread, kind, (uintptr_t)block, size, false);
	mt_emit_order();
}

/* For what happens after it. */
static inline void mt_emit_after(struct mt_thread *thread, enum mt_rec_kind kind, const void *block,
				 uint64_t size)
{
	if (mt_likely(mt_emit_is_ready(thread)))
		mt_writer_put(&thread->writer, mt_stamp_after(thread->stamp_mode), (uintptr_t)block,
			      size, kind);
	else
		mt_emit_slow(thread, kind, (uintptr_t)block, size, true);
	mt_emit_order();
}

#endif
