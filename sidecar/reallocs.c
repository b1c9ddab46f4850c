/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reallocs: two records that are an event when nothing came between them. By its bits a begin is a
 * free of the old block and an end an allocation of the new one; what is here makes one event of
 * them where that is possible, and takes back what a failed one did.
 */
#include "sidecar/repair_impl.h"

/* Ends a begin without an event: the old block is live (again), if it was. */
static void restore_begin(struct mt_repair *repair, struct mt_origin *origin)
{
	struct mt_watched *begin = origin->begin;
	bool was_live = begin->kind == MT_HELD_BEGIN;
	uint64_t addr = begin->story.addr;

	origin->begin = NULL;
	origin->begun = MT_BEGUN_NOT;
	mt_shelf_remove(&repair->shelf, begin);
	if (was_live && mt_liveness_set(&origin->space->live, addr) == MT_LIVE_FLIPPED)
		mt_repair_settle(repair, origin->space, addr, true);
}

void mt_origin_end(struct mt_repair *repair, struct mt_origin *origin)
{
	if (origin->begun == MT_BEGUN_NOT)
		return;
	repair->sink->stats.dropped_begins++;
	if (origin->begin)
		restore_begin(repair, origin);
	origin->begun = MT_BEGUN_NOT;
}

/* A begin found its block free: was that by a free right before, which may have been early? */
static bool took_its_place(struct mt_repair *repair, const struct mt_origin *origin, uint64_t addr)
{
	return mt_shelf_find(&repair->shelf, origin->space, addr, 1u << MT_HELD_BEGIN) ||
	       mt_sink_freed_lately(repair->sink, origin->pid, addr);
}

void mt_realloc_begin(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec)
{
	struct mt_story story = mt_repair_story(origin, MT_EVENT_FREE, rec->addr, 0);
	struct mt_space *space = origin->space;
	enum mt_liveness_result result;

	/* The end of an earlier one was lost, or a signal handler jumped out of it. */
	mt_origin_end(repair, origin);
	if (rec->addr == 0) {
		origin->begun = MT_BEGUN_NULL;
		return;
	}
	if (mt_repair_was_owed(repair, space, rec->addr)) {
		origin->begun = MT_BEGUN_SPLIT;
		return;
	}
	result = mt_liveness_clear(&space->live, rec->addr);
	if (result == MT_LIVE_UNCHECKED) {
		repair->sink->stats.unchecked++;
		origin->begun = MT_BEGUN_UNCHECKED;
		origin->begun_addr = rec->addr;
		return;
	}
	if (result == MT_LIVE_CONFLICT && repair->shelf.parked >= MT_PARKED_MAX)
		mt_repair_force(repair, repair->shelf.oldest);
	origin->begin = mt_shelf_add(&repair->shelf, space, &story, MT_HELD_BEGIN);
	if (!origin->begin) {
		mt_repair_free(repair, space, &story, rec->stamp, result);
		origin->begun = MT_BEGUN_SPLIT;
		return;
	}
	origin->begin->origin = origin;
	origin->begun = MT_BEGUN_WATCHED;
	if (result == MT_LIVE_CONFLICT) {
		origin->begin->kind = MT_PARKED_BEGIN;
		origin->begin->swapped = took_its_place(repair, origin, rec->addr);
		mt_repair_park_watched(repair, origin->begin, rec->stamp);
	} else {
		mt_repair_settle(repair, space, rec->addr, false);
	}
}

/*
 * The end of a realloc whose begin is parked. Either the block's allocation is still to come (or is
 * not known): the realloc waits for it as a whole. Or a free that was stamped too early, of the
 * block that this realloc gave, took the begin's place: then the begin stands for that free, behind
 * the end.
 */
static void realloc_parked(struct mt_repair *repair, struct mt_origin *origin,
			   struct mt_story *story, uint64_t stamp)
{
	struct mt_watched *begin = origin->begin;

	mt_shelf_leave_parked(&repair->shelf, begin);
	begin->origin = NULL;
	origin->begin = NULL;
	origin->begun = MT_BEGUN_NOT;
	if (begin->swapped) {
		begin->kind = MT_PARKED_FREE;
		repair->sink->stats.split_reallocs++;
	} else {
		begin->kind = MT_PARKED_REALLOC;
		begin->new_addr = story->addr;
		begin->new_size = story->size;
	}
	mt_repair_park_watched(repair, begin, stamp);
	if (begin->kind == MT_PARKED_FREE)
		mt_repair_alloc(repair, origin->space, story, stamp,
				mt_liveness_set(&origin->space->live, story->addr));
}

/* The end of a realloc whose old block is still its own: one Realloc, or Free and a parked one. */
static void realloc_joined(struct mt_repair *repair, struct mt_origin *origin,
			   struct mt_story *story, uint64_t stamp)
{
	struct mt_watched *begin = origin->begin;
	struct mt_space *space = origin->space;
	enum mt_liveness_result result = mt_liveness_set(&space->live, story->addr);

	if (result == MT_LIVE_CONFLICT) {
		mt_repair_split(repair, begin, 0);
		origin->begun = MT_BEGUN_NOT;
		mt_repair_park(repair, space, story, MT_PARKED_ALLOC, stamp);
		return;
	}
	story->flags = MT_EVENT_HAS_OLD;
	story->old = begin->story.addr;
	origin->begin = NULL;
	origin->begun = MT_BEGUN_NOT;
	mt_shelf_remove(&repair->shelf, begin);
	if (result == MT_LIVE_FLIPPED && space->watched)
		mt_repair_split_held_at(repair, space, story);
	mt_repair_count(repair, result);
	mt_repair_write(repair, story, stamp);
	if (result == MT_LIVE_FLIPPED)
		mt_repair_settle(repair, space, story->addr, true);
}

void mt_realloc_end(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec)
{
	struct mt_story story =
		mt_repair_story(origin, MT_EVENT_REALLOC, rec->addr, rec->size_kind >> 8);

	if (origin->begun == MT_BEGUN_WATCHED) {
		if (origin->begin->kind == MT_PARKED_BEGIN)
			realloc_parked(repair, origin, &story, rec->stamp);
		else
			realloc_joined(repair, origin, &story, rec->stamp);
		return;
	}
	if (origin->begun == MT_BEGUN_NULL)
		story.flags = MT_EVENT_HAS_OLD;
	if (origin->begun == MT_BEGUN_UNCHECKED) {
		story.flags = MT_EVENT_HAS_OLD;
		story.old = origin->begun_addr;
	}
	origin->begun = MT_BEGUN_NOT;
	mt_repair_alloc(repair, origin->space, &story, rec->stamp,
			mt_liveness_set(&origin->space->live, rec->addr));
}

/*
 * A realloc failed whose Free was written: an allocation with an early stamp took the begin for the
 * free of the block before. So one free that is still to come has its event. Or it came: a begin
 * that holds the block takes the event over; a Free that was written took the block from the
 * artifact, and it is put back.
 */
static void undo_split(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec)
{
	struct mt_story story =
		mt_repair_story(origin, MT_EVENT_REALLOC, rec->addr, origin->split_size);
	struct mt_space *space = origin->space;
	enum mt_liveness_result result = mt_liveness_set(&space->live, rec->addr);
	struct mt_watched *held;

	if (result == MT_LIVE_CONFLICT)
		mt_repair_park(repair, space, &story, MT_OWED_FREE, rec->stamp);
	if (result != MT_LIVE_FLIPPED)
		return;
	held = mt_shelf_find(&repair->shelf, space, rec->addr, 1u << MT_HELD_BEGIN);
	if (!held) {
		mt_repair_alloc(repair, space, &story, rec->stamp, result);
		return;
	}
	mt_repair_become_split(repair, held, story.size);
	mt_repair_settle(repair, space, rec->addr, true);
}

void mt_realloc_failed(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec)
{
	if (origin->begin)
		restore_begin(repair, origin);
	else if (origin->begun == MT_BEGUN_SPLIT)
		undo_split(repair, origin, rec);
	origin->begun = MT_BEGUN_NOT;
}

void mt_realloc_freed(struct mt_repair *repair, struct mt_origin *origin, const struct mt_rec *rec)
{
	struct mt_watched *begin = origin->begin;
	enum mt_begun begun = (enum mt_begun)origin->begun;
	struct mt_story story = mt_repair_story(origin, MT_EVENT_FREE, rec->addr, 0);

	origin->begin = NULL;
	origin->begun = MT_BEGUN_NOT;
	if (begun == MT_BEGUN_SPLIT || begun == MT_BEGUN_NULL)
		return;
	if (begun != MT_BEGUN_WATCHED) {
		/* The begin was lost, or its region has no bits: this one record is the free. */
		mt_repair_free(repair, origin->space, &story, rec->stamp,
			       mt_liveness_clear(&origin->space->live, rec->addr));
		return;
	}
	if (begin->kind == MT_PARKED_BEGIN) {
		begin->kind = MT_PARKED_FREE; /* and waits on as one */
		begin->origin = NULL;
		mt_shelf_leave_parked(&repair->shelf, begin);
		mt_repair_park_watched(repair, begin, rec->stamp);
		return;
	}
	story.addr = begin->story.addr;
	mt_shelf_remove(&repair->shelf, begin);
	mt_repair_write(repair, &story, rec->stamp);
}
