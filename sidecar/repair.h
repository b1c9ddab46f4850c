/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Order repair: takes records merged by stamp and writes them as events such that no block is
 * allocated while live or freed while dead.
 *
 * A record that contradicts its address's liveness bit is *parked*: it alone, nothing waits for it.
 * It is released as soon as the bit flips, or, MT_PARK_NS of stamp time later, written as it is
 * and flagged. A realloc's begin acts as a free of the old block whose event is *held*: until its
 * end, which makes the two one Realloc, or until another thread's allocation of the old address
 * makes them a Free and, later, a Realloc without old_addr. Parked and held records are *watched*:
 * found by space and address.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_REPAIR_H
#define MT_SIDECAR_REPAIR_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/chunk.h"
#include "common/event.h"
#include "sidecar/liveness.h"
#include "sidecar/sink.h"
#include "sidecar/shelf.h"

#define MT_PARK_NS	UINT64_C(50000)	  /* stamp time that an event stays parked at most */
#define MT_PARK_IDLE_NS UINT64_C(1000000) /* the same when nothing moves */
#define MT_PARKED_MAX	16384u		  /* beyond it the oldest are written and flagged */

/* Who a record is from: a thread's stream. */
struct mt_origin {
	struct mt_space *space;
	int32_t pid, tid;
	/* A realloc that began: `begin` is its watched record, NULL for realloc(NULL, n) and for
	 * one whose Free was written already. */
	struct mt_watched *begin;
	uint64_t begun_addr; /* MT_BEGUN_UNCHECKED: the old block */
	uint64_t split_size; /* MT_BEGUN_SPLIT: of the block that is at its address now */
	uint8_t begun;	     /* enum mt_begun */
};

enum mt_begun {
	MT_BEGUN_NOT,
	MT_BEGUN_NULL,	    /* realloc(NULL, n) */
	MT_BEGUN_WATCHED,   /* begin is parked or held */
	MT_BEGUN_SPLIT,	    /* its Free was written */
	MT_BEGUN_UNCHECKED, /* the old block's region has no bits: nothing can interleave visibly */
};

struct mt_repair {
	struct mt_sink *sink;
	struct mt_shelf shelf;
};

void mt_repair_init(struct mt_repair *repair, struct mt_sink *sink);
void mt_repair_fini(struct mt_repair *repair);

/* The memory is gone: what is parked is written and flagged. NULL is accepted. */
void mt_space_end(struct mt_repair *repair, struct mt_space *space);

/* The thread is gone: a realloc that it began and did not end is dropped, the block stays. */
void mt_origin_end(struct mt_repair *repair, struct mt_origin *origin);

/*
 * One record of the heap kinds (MALLOC to MUNMAP). Its stamp is that of the merge: none that comes
 * later is older, but for late ones.
 */
void mt_repair_record(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec);

/* The two kinds that matter, when nothing is out of the ordinary; else the same as above. */
static inline void mt_repair_apply(struct mt_repair *repair, struct mt_origin *origin,
				   const struct mt_rec *rec);

/* Writes and flags what was parked longer than the window before `stamp`. */
void mt_repair_expire(struct mt_repair *repair, uint64_t stamp);

/* The same when all that is visible was taken: what was parked before `before_ns` (wall time). */
void mt_repair_expire_idle(struct mt_repair *repair, uint64_t before_ns);

/* Writes and flags all that is parked. */
void mt_repair_expire_all(struct mt_repair *repair);

static_assert((int)MT_REC_MALLOC == (int)MT_EVENT_MALLOC &&
		      (int)MT_REC_CALLOC == (int)MT_EVENT_CALLOC &&
		      (int)MT_REC_ALIGNED_ALLOC == (int)MT_EVENT_ALIGNED_ALLOC,
	      "allocations have the same number as record and as event");
static_assert(MT_REC_FREE == MT_REC_ALIGNED_ALLOC + 1, "the four kinds that are in one piece");

static inline void mt_repair_apply(struct mt_repair *repair, struct mt_origin *origin,
				   const struct mt_rec *rec)
{
	unsigned kind = (unsigned)(rec->size_kind & 0xff);
	struct mt_space *space = origin->space;
	bool is_free = kind == MT_REC_FREE;
	struct mt_event *event;

	if (__builtin_expect(kind > MT_REC_FREE || space->watched ||
				     !mt_liveness_flip(&space->live, rec->addr, is_free),
			     0)) {
		mt_repair_record(repair, origin, rec);
		return;
	}
	event = mt_sink_add(repair->sink, rec->stamp);
	event->addr = rec->addr;
	event->size = is_free ? 0 : rec->size_kind >> 8;
	event->aux = 0;
	event->stack_hash = 0;
	event->pid = origin->pid;
	event->tid = origin->tid;
	event->member = 0;
	event->type = (uint8_t)(is_free ? MT_EVENT_FREE : kind);
	event->flags = 0;
	event->reserved = 0;
}

#endif
