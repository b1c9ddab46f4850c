/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/repair_impl.h"

#include <stdlib.h>
#include <string.h>

void mt_repair_init(struct mt_repair *repair, struct mt_sink *sink)
{
	mt_shelf_init(&repair->shelf, mt_clock_ticks(&sink->clock, MT_PARK_NS));
	repair->sink = sink;
}

void mt_repair_fini(struct mt_repair *repair)
{
	mt_shelf_fini(&repair->shelf);
}

void mt_repair_write(struct mt_repair *repair, const struct mt_story *story, uint64_t stamp)
{
	struct mt_event *event = mt_sink_add(repair->sink, stamp);

	event->addr = story->addr;
	event->size = story->size;
	event->aux = story->old;
	event->stack_hash = 0;
	event->pid = story->pid;
	event->tid = story->tid;
	event->member = 0;
	event->type = story->type;
	event->flags = story->flags;
	event->reserved = 0;
}

/* At the place of the merge: the stamp is older by design, which is not "late". */
void mt_repair_write_here(struct mt_repair *repair, const struct mt_story *story)
{
	mt_repair_write(repair, story, repair->sink->last_stamp);
}

void mt_repair_park_watched(struct mt_repair *repair, struct mt_watched *watched, uint64_t stamp)
{
	/* A late record's age counts from now: what it waits for may be as late. */
	if (stamp < repair->sink->last_stamp)
		stamp = repair->sink->last_stamp;
	mt_shelf_park(&repair->shelf, watched, stamp);
}

static void flag(struct mt_repair *repair, enum mt_watched_kind kind)
{
	mt_sink_flag(repair->sink,
		     kind == MT_PARKED_ALLOC ? MT_ANOMALY_LIVE_ALLOC : MT_ANOMALY_UNKNOWN_FREE);
}

void mt_repair_count(struct mt_repair *repair, enum mt_liveness_result result)
{
	if (result == MT_LIVE_INHERITED)
		repair->sink->stats.inherited_ends++;
	if (result == MT_LIVE_UNCHECKED)
		repair->sink->stats.unchecked++;
}

void mt_repair_park(struct mt_repair *repair, struct mt_space *space, const struct mt_story *story,
		    enum mt_watched_kind kind, uint64_t stamp)
{
	struct mt_watched *watched;

	if (repair->shelf.parked >= MT_PARKED_MAX)
		mt_repair_force(repair, repair->shelf.oldest);
	watched = mt_shelf_add(&repair->shelf, space, story, kind);
	if (watched) {
		mt_repair_park_watched(repair, watched, stamp);
	} else if (kind != MT_OWED_FREE) {
		mt_repair_write_here(repair, story);
		flag(repair, kind);
	}
}

/* The Free of a realloc that began is written; a block of that size is at its address now. */
void mt_repair_become_split(struct mt_repair *repair, struct mt_watched *begin, uint64_t size)
{
	begin->origin->begin = NULL;
	begin->origin->begun = MT_BEGUN_SPLIT;
	begin->origin->split_size = size;
	mt_shelf_remove(&repair->shelf, begin);
	repair->sink->stats.split_reallocs++;
}

void mt_repair_split(struct mt_repair *repair, struct mt_watched *begin, uint64_t size)
{
	struct mt_story story = begin->story;

	mt_repair_become_split(repair, begin, size);
	mt_repair_write_here(repair, &story);
}

/*
 * An allocation is about to be written over the block of a realloc that began. When a free of that
 * block waits, the begin was early and is that of a later life: the free is written, and the begin
 * waits in its place. Else the begin is what freed it.
 */
void mt_repair_split_held_at(struct mt_repair *repair, struct mt_space *space,
			     const struct mt_story *alloc)
{
	struct mt_watched *begin =
		mt_shelf_find(&repair->shelf, space, alloc->addr, 1u << MT_HELD_BEGIN);
	struct mt_watched *waits;
	struct mt_story story;

	if (!begin)
		return;
	waits = mt_shelf_find(&repair->shelf, space, alloc->addr, 1u << MT_PARKED_FREE);
	if (!waits) {
		mt_repair_split(repair, begin, alloc->size);
		return;
	}
	story = waits->story;
	mt_shelf_remove(&repair->shelf, waits);
	mt_repair_write_here(repair, &story);
	repair->sink->stats.parked++;
	begin->kind = MT_PARKED_BEGIN;
}

/* A free has come: is it one whose event was written already, by a realloc that failed? */
bool mt_repair_was_owed(struct mt_repair *repair, struct mt_space *space, uint64_t addr)
{
	struct mt_watched *owed =
		space->watched ? mt_shelf_find(&repair->shelf, space, addr, 1u << MT_OWED_FREE)
			       : NULL;

	if (!owed)
		return false;
	mt_shelf_remove(&repair->shelf, owed);
	repair->sink->stats.parked++;
	return true;
}

/*
 * A whole realloc whose old block is free now, or is not known: writes it. Returns the address
 * whose bit that set; 0: the new block waits for its bit.
 */
static uint64_t write_realloc(struct mt_repair *repair, struct mt_watched *watched, bool unknown)
{
	struct mt_space *space = watched->space;
	struct mt_story story = watched->story;
	uint64_t old = story.addr;
	enum mt_liveness_result result = mt_liveness_set(&space->live, watched->new_addr);

	story.type = MT_EVENT_REALLOC;
	story.addr = watched->new_addr;
	story.size = watched->new_size;
	mt_shelf_remove(&repair->shelf, watched);
	if (result == MT_LIVE_CONFLICT) {
		struct mt_story freed = { .addr = old, .type = MT_EVENT_FREE };

		freed.pid = story.pid;
		freed.tid = story.tid;
		mt_repair_write_here(repair, &freed);
		if (unknown)
			flag(repair, MT_PARKED_FREE);
		repair->sink->stats.split_reallocs++;
		mt_repair_park(repair, space, &story, MT_PARKED_ALLOC, repair->sink->last_stamp);
		return 0;
	}
	if (result == MT_LIVE_FLIPPED && space->watched)
		mt_repair_split_held_at(repair, space, &story);
	mt_repair_count(repair, result);
	story.flags = MT_EVENT_HAS_OLD;
	story.old = old;
	mt_repair_write_here(repair, &story);
	if (unknown)
		flag(repair, MT_PARKED_FREE);
	return result == MT_LIVE_FLIPPED ? story.addr : 0;
}

/*
 * The bit of *addr was set: a free that waited for it, if any, comes now. Returns whether that
 * changed a bit: that of *addr, or, by a realloc, that of another address, put there; *is_set says
 * to what.
 */
static bool release_free(struct mt_repair *repair, struct mt_space *space, uint64_t *addr,
			 bool *is_set)
{
	struct mt_watched *watched = mt_shelf_find(&repair->shelf, space, *addr,
						   1u << MT_PARKED_FREE | 1u << MT_PARKED_BEGIN |
							   1u << MT_PARKED_REALLOC);
	struct mt_story story;

	if (!watched || mt_liveness_clear(&space->live, *addr) != MT_LIVE_FLIPPED)
		return false;
	repair->sink->stats.parked++;
	*is_set = false;
	if (watched->kind == MT_PARKED_REALLOC) {
		uint64_t next = write_realloc(repair, watched, false);

		*is_set = next != 0;
		*addr = next != 0 ? next : *addr;
		return true;
	}
	if (watched->kind == MT_PARKED_BEGIN) {
		mt_shelf_leave_parked(&repair->shelf, watched);
		watched->kind = MT_HELD_BEGIN;
		return true;
	}
	story = watched->story;
	mt_shelf_remove(&repair->shelf, watched);
	mt_repair_write_here(repair, &story);
	return true;
}

/* The bit of addr was cleared: an allocation that waited for it comes now. */
static bool release_alloc(struct mt_repair *repair, struct mt_space *space, uint64_t addr)
{
	struct mt_watched *watched =
		mt_shelf_find(&repair->shelf, space, addr, 1u << MT_PARKED_ALLOC);
	struct mt_story story;

	if (!watched || mt_liveness_set(&space->live, addr) != MT_LIVE_FLIPPED)
		return false;
	repair->sink->stats.parked++;
	story = watched->story;
	mt_shelf_remove(&repair->shelf, watched);
	mt_repair_split_held_at(repair, space, &story);
	mt_repair_write_here(repair, &story);
	return true;
}

/* The bit of addr flipped to `is_set`: releases what waits, as often as that flips it again. */
void mt_repair_settle(struct mt_repair *repair, struct mt_space *space, uint64_t addr, bool is_set)
{
	while (space->watched) {
		if (is_set) {
			if (!release_free(repair, space, &addr, &is_set))
				return;
		} else {
			if (!release_alloc(repair, space, addr))
				return;
			is_set = true;
		}
	}
}

/*
 * Writes a parked record as it is, flagged. A begin waits on, unflagged, until its realloc ends:
 * only then can be told what it was.
 */
void mt_repair_force(struct mt_repair *repair, struct mt_watched *watched)
{
	struct mt_space *space = watched->space;
	struct mt_story story = watched->story;
	enum mt_watched_kind kind = watched->kind;
	struct mt_watched *held;
	uint64_t set;

	if (kind == MT_PARKED_BEGIN) {
		mt_shelf_leave_parked(&repair->shelf, watched);
		return;
	}
	/* The block that it is too late for is the one which a realloc is about to free. */
	held = mt_shelf_find(&repair->shelf, space, story.addr, 1u << MT_HELD_BEGIN);
	if (held && kind != MT_PARKED_ALLOC && kind != MT_OWED_FREE)
		mt_repair_split(repair, held, 0);
	if (kind == MT_PARKED_REALLOC) {
		set = write_realloc(repair, watched, true);
		if (set != 0)
			mt_repair_settle(repair, space, set, true);
		return;
	}
	mt_shelf_remove(&repair->shelf, watched);
	if (kind == MT_OWED_FREE) /* it never came, and has no event to be written */
		return;
	mt_repair_write_here(repair, &story);
	flag(repair, kind);
}

void mt_repair_alloc(struct mt_repair *repair, struct mt_space *space, const struct mt_story *story,
		     uint64_t stamp, enum mt_liveness_result result)
{
	switch (result) {
	case MT_LIVE_FLIPPED:
		if (space->watched)
			mt_repair_split_held_at(repair, space, story);
		mt_repair_write(repair, story, stamp);
		mt_repair_settle(repair, space, story->addr, true);
		break;
	case MT_LIVE_CONFLICT:
		mt_repair_park(repair, space, story, MT_PARKED_ALLOC, stamp);
		break;
	case MT_LIVE_INHERITED:
	case MT_LIVE_UNCHECKED:
		mt_repair_count(repair, result);
		mt_repair_write(repair, story, stamp);
		break;
	}
}

void mt_repair_free(struct mt_repair *repair, struct mt_space *space, const struct mt_story *story,
		    uint64_t stamp, enum mt_liveness_result result)
{
	switch (result) {
	case MT_LIVE_FLIPPED:
		mt_repair_write(repair, story, stamp);
		mt_repair_settle(repair, space, story->addr, false);
		break;
	case MT_LIVE_CONFLICT:
		mt_repair_park(repair, space, story, MT_PARKED_FREE, stamp);
		break;
	case MT_LIVE_INHERITED:
	case MT_LIVE_UNCHECKED:
		repair->sink->stats.unchecked++;
		mt_repair_write(repair, story, stamp);
		break;
	}
}

static void simple_record(struct mt_repair *repair, struct mt_origin *origin,
			  const struct mt_rec *rec)
{
	unsigned kind = (unsigned)(rec->size_kind & 0xff);
	struct mt_story story;

	if (kind == MT_REC_FREE) {
		if (mt_repair_was_owed(repair, origin->space, rec->addr))
			return;
		story = mt_repair_story(origin, MT_EVENT_FREE, rec->addr, 0);
		mt_repair_free(repair, origin->space, &story, rec->stamp,
			       mt_liveness_clear(&origin->space->live, rec->addr));
	} else {
		story = mt_repair_story(origin, (enum mt_event_type)kind, rec->addr,
					rec->size_kind >> 8);
		mt_repair_alloc(repair, origin->space, &story, rec->stamp,
				mt_liveness_set(&origin->space->live, rec->addr));
	}
}

void mt_repair_record(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec)
{
	unsigned kind = (unsigned)(rec->size_kind & 0xff);
	struct mt_story story;

	switch (kind) {
	case MT_REC_MALLOC:
	case MT_REC_CALLOC:
	case MT_REC_ALIGNED_ALLOC:
	case MT_REC_FREE:
		simple_record(repair, origin, rec);
		break;
	case MT_REC_REALLOC_BEGIN:
		mt_realloc_begin(repair, origin, rec);
		break;
	case MT_REC_REALLOC_END:
		mt_realloc_end(repair, origin, rec);
		break;
	case MT_REC_REALLOC_FAILED:
		mt_realloc_failed(repair, origin, rec);
		break;
	case MT_REC_REALLOC_FREED:
		mt_realloc_freed(repair, origin, rec);
		break;
	case MT_REC_MMAP:
	case MT_REC_MUNMAP:
		story = mt_repair_story(origin,
					kind == MT_REC_MMAP ? MT_EVENT_MMAP : MT_EVENT_MUNMAP,
					rec->addr, rec->size_kind >> 8);
		mt_repair_write(repair, &story, rec->stamp);
		break;
	}
}

void mt_repair_expire(struct mt_repair *repair, uint64_t stamp)
{
	while (repair->shelf.oldest &&
	       stamp > repair->shelf.oldest->stamp + repair->shelf.window_ticks)
		mt_repair_force(repair, repair->shelf.oldest);
}

void mt_repair_expire_idle(struct mt_repair *repair, uint64_t before_ns)
{
	while (repair->shelf.oldest && repair->shelf.oldest->parked_ns < before_ns)
		mt_repair_force(repair, repair->shelf.oldest);
}

void mt_repair_expire_all(struct mt_repair *repair)
{
	while (repair->shelf.oldest)
		mt_repair_force(repair, repair->shelf.oldest);
}

void mt_space_end(struct mt_repair *repair, struct mt_space *space)
{
	struct mt_watched *at, *next;

	if (!space)
		return;
	/* Writing one may release others. */
	for (at = repair->shelf.oldest; at && space->watched;) {
		if (at->space != space) {
			at = at->newer;
			continue;
		}
		mt_repair_force(repair, at);
		at = repair->shelf.oldest;
	}
	/* Begins of threads that live on would point to a space that is gone. */
	for (unsigned i = 0; i < MT_SHELF_BUCKETS && space->watched; i++) {
		for (at = repair->shelf.buckets[i]; at; at = next) {
			next = at->next;
			if (at->space != space)
				continue;
			at->origin->begin = NULL;
			at->origin->begun = MT_BEGUN_NOT;
			repair->sink->stats.dropped_begins++;
			mt_shelf_remove(&repair->shelf, at);
		}
	}
	mt_liveness_fini(&space->live);
	free(space);
}
