/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Records that the order repair keeps for a while: parked ones, which wait for their address's bit,
 * and begins of reallocs, held until their end. Found by space and address; the parked ones are in
 * a list as well, oldest first.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_SHELF_H
#define MT_SIDECAR_SHELF_H

#include <stdbool.h>
#include <stdint.h>

#include "sidecar/liveness.h"

#define MT_SHELF_BUCKETS 4096u

struct mt_origin;

/* The memory of a process. */
struct mt_space {
	struct mt_liveness live;
	struct mt_space *next; /* for the owner's lists */
	uint32_t watched;      /* records of it that are parked or held */
};

enum mt_watched_kind {
	MT_PARKED_FREE,
	MT_PARKED_ALLOC,
	MT_PARKED_BEGIN,   /* a realloc's begin whose old block is not live yet */
	MT_PARKED_REALLOC, /* the same, and its end: addr is the old block, new_addr the new one */
	MT_OWED_FREE,	   /* a free that is still to come and whose event was written */
	MT_HELD_BEGIN,	   /* a realloc's begin that freed the old block: bit clear, no event yet */
};

/* What an event says beside its time. */
struct mt_story {
	uint64_t addr, size;
	uint64_t old; /* Realloc with MT_EVENT_HAS_OLD */
	int32_t pid, tid;
	uint8_t type; /* enum mt_event_type */
	uint8_t flags;
};

struct mt_watched {
	struct mt_watched *next; /* in its bucket, or of the unused */
	struct mt_watched *older, *newer;
	struct mt_space *space;
	struct mt_origin *origin; /* of a begin */
	struct mt_story story;
	uint64_t stamp;
	uint64_t parked_ns;
	uint64_t new_addr, new_size; /* MT_PARKED_REALLOC */
	enum mt_watched_kind kind;
	bool parked;  /* among the parked ones */
	bool swapped; /* a parked begin: a free that was stamped too early took its place */
};

struct mt_shelf {
	uint64_t deadline;		    /* stamp at which the oldest parked record expires */
	uint64_t window_ticks;		    /* how long a record stays parked */
	uint64_t now_ns;		    /* wall time of the round, set by the owner */
	struct mt_watched *oldest, *newest; /* parked, in the order of their parking */
	struct mt_watched *unused;
	uint32_t parked;
	struct mt_watched *buckets[MT_SHELF_BUCKETS];
};

void mt_shelf_init(struct mt_shelf *shelf, uint64_t window_ticks);
void mt_shelf_fini(struct mt_shelf *shelf);

/* The one watched longest of `kinds` (1 << enum mt_watched_kind); NULL: none. */
struct mt_watched *mt_shelf_find(struct mt_shelf *shelf, const struct mt_space *space,
				 uint64_t addr, unsigned kinds);

/* Watches a record. One of a parked kind is to be parked by the caller. NULL: out of memory. */
struct mt_watched *mt_shelf_add(struct mt_shelf *shelf, struct mt_space *space,
				const struct mt_story *story, enum mt_watched_kind kind);

/* Puts a record at the end of the parked ones, and takes it out again if it is there. */
void mt_shelf_park(struct mt_shelf *shelf, struct mt_watched *watched, uint64_t stamp);
void mt_shelf_leave_parked(struct mt_shelf *shelf, struct mt_watched *watched);

/* Watches it no more, parked or held; its memory may be used for the next. */
void mt_shelf_remove(struct mt_shelf *shelf, struct mt_watched *watched);

/* NULL when out of memory. Ended by mt_space_end() (repair.h). */
struct mt_space *mt_space_new(struct mt_liveness_budget *budget);

/* What a fork leaves in the child. NULL when out of memory. */
struct mt_space *mt_space_fork(struct mt_shelf *shelf, struct mt_space *parent);

#endif
