/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the two parts of the order repair share: repair.c, which keeps allocations and frees of an
 * address alternating, and reallocs.c, which makes events of a realloc's two records.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_REPAIR_IMPL_H
#define MT_SIDECAR_REPAIR_IMPL_H

#include "sidecar/repair.h"

/* Writes an event, at its own place in time or, for one that waited, at that of the merge. */
void mt_repair_write(struct mt_repair *repair, const struct mt_story *story, uint64_t stamp);
void mt_repair_write_here(struct mt_repair *repair, const struct mt_story *story);

/* Parks a record, or one that is watched already. */
void mt_repair_park(struct mt_repair *repair, struct mt_space *space, const struct mt_story *story,
		    enum mt_watched_kind kind, uint64_t stamp);
void mt_repair_park_watched(struct mt_repair *repair, struct mt_watched *watched, uint64_t stamp);

/* Writes the oldest parked record as it is, flagged, whatever it waits for. */
void mt_repair_force(struct mt_repair *repair, struct mt_watched *watched);

/*
 * An allocation or a free whose bit was asked to flip, with that result: writes it and what that
 * releases, or parks it.
 */
void mt_repair_alloc(struct mt_repair *repair, struct mt_space *space, const struct mt_story *story,
		     uint64_t stamp, enum mt_liveness_result result);
void mt_repair_free(struct mt_repair *repair, struct mt_space *space, const struct mt_story *story,
		    uint64_t stamp, enum mt_liveness_result result);

/* The bit of addr flipped to `is_set`: releases what waits, as often as that flips it again. */
void mt_repair_settle(struct mt_repair *repair, struct mt_space *space, uint64_t addr, bool is_set);

/* Counts the results of an allocation that are out of the ordinary. */
void mt_repair_count(struct mt_repair *repair, enum mt_liveness_result result);

/*
 * A realloc under way whose old block is freed by a Free of its own: `size` is that of the block
 * which has the address now. become_split: the Free was written already.
 */
void mt_repair_split(struct mt_repair *repair, struct mt_watched *begin, uint64_t size);
void mt_repair_become_split(struct mt_repair *repair, struct mt_watched *begin, uint64_t size);
void mt_repair_split_held_at(struct mt_repair *repair, struct mt_space *space,
			     const struct mt_story *alloc);

/* A free has come: is it one whose event was written already, by a realloc that failed? */
bool mt_repair_was_owed(struct mt_repair *repair, struct mt_space *space, uint64_t addr);

/* reallocs.c: the records of a realloc. */
void mt_realloc_begin(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec);
void mt_realloc_end(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec);
void mt_realloc_failed(struct mt_repair *repair, struct mt_origin *origin,
		       const struct mt_rec *rec);
void mt_realloc_freed(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec);

static inline struct mt_story mt_repair_story(const struct mt_origin *origin,
					      enum mt_event_type type, uint64_t addr, uint64_t size)
{
	return (struct mt_story){
		.addr = addr,
		.size = size,
		.pid = origin->pid,
		.tid = origin->tid,
		.type = (uint8_t)type,
	};
}

#endif
