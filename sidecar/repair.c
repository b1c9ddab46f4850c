/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/repair.h"

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

static void write_story(struct mt_repair *repair, const struct mt_story *story, uint64_t stamp)
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
static void write_here(struct mt_repair *repair, const struct mt_story *story)
{
	write_story(repair, story, repair->sink->last_stamp);
}

static void park_watched(struct mt_repair *repair, struct mt_watched *watched, uint64_t stamp)
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

static void count_result(struct mt_repair *repair, enum mt_liveness_result result)
{
	if (result == MT_LIVE_INHERITED)
		repair->sink->stats.inherited_ends++;
	if (result == MT_LIVE_UNCHECKED)
		repair->sink->stats.unchecked++;
}

static void force(struct mt_repair *repair, struct mt_watched *watched);

static void park(struct mt_repair *repair, struct mt_space *space, const struct mt_story *story,
		 enum mt_watched_kind kind, uint64_t stamp)
{
	struct mt_watched *watched;

	if (repair->shelf.parked >= MT_PARKED_MAX)
		force(repair, repair->shelf.oldest);
	watched = mt_shelf_add(&repair->shelf, space, story, kind);
	if (watched) {
		park_watched(repair, watched, stamp);
		return;
	}
	write_here(repair, story);
	flag(repair, kind);
}

/* Writes the Free of a realloc that began: another thread has the old address now. */
static void split_begin(struct mt_repair *repair, struct mt_watched *begin)
{
	struct mt_story story = begin->story;

	begin->origin->begin = NULL;
	begin->origin->begun = MT_BEGUN_SPLIT;
	mt_shelf_remove(&repair->shelf, begin);
	write_here(repair, &story);
	repair->sink->stats.split_reallocs++;
}

static void split_held_at(struct mt_repair *repair, struct mt_space *space, uint64_t addr)
{
	struct mt_watched *begin = mt_shelf_find(&repair->shelf, space, addr, 1u << MT_HELD_BEGIN);

	if (begin)
		split_begin(repair, begin);
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
		write_here(repair, &freed);
		if (unknown)
			flag(repair, MT_PARKED_FREE);
		repair->sink->stats.split_reallocs++;
		park(repair, space, &story, MT_PARKED_ALLOC, repair->sink->last_stamp);
		return 0;
	}
	if (result == MT_LIVE_FLIPPED && space->watched)
		split_held_at(repair, space, story.addr);
	count_result(repair, result);
	story.flags = MT_EVENT_HAS_OLD;
	story.old = old;
	write_here(repair, &story);
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
	write_here(repair, &story);
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
	split_held_at(repair, space, addr);
	write_here(repair, &story);
	return true;
}

/* The bit of addr flipped to `is_set`: releases what waits, as often as that flips it again. */
static void settle(struct mt_repair *repair, struct mt_space *space, uint64_t addr, bool is_set)
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
static void force(struct mt_repair *repair, struct mt_watched *watched)
{
	struct mt_space *space = watched->space;
	struct mt_story story = watched->story;
	enum mt_watched_kind kind = watched->kind;
	uint64_t set;

	if (kind == MT_PARKED_BEGIN) {
		mt_shelf_leave_parked(&repair->shelf, watched);
		return;
	}
	if (kind == MT_PARKED_REALLOC) {
		set = write_realloc(repair, watched, true);
		if (set != 0)
			settle(repair, space, set, true);
		return;
	}
	mt_shelf_remove(&repair->shelf, watched);
	write_here(repair, &story);
	flag(repair, kind);
}

static void alloc_with(struct mt_repair *repair, struct mt_space *space,
		       const struct mt_story *story, uint64_t stamp, enum mt_liveness_result result)
{
	switch (result) {
	case MT_LIVE_FLIPPED:
		if (space->watched)
			split_held_at(repair, space, story->addr);
		write_story(repair, story, stamp);
		settle(repair, space, story->addr, true);
		break;
	case MT_LIVE_CONFLICT:
		park(repair, space, story, MT_PARKED_ALLOC, stamp);
		break;
	case MT_LIVE_INHERITED:
	case MT_LIVE_UNCHECKED:
		count_result(repair, result);
		write_story(repair, story, stamp);
		break;
	}
}

static void free_with(struct mt_repair *repair, struct mt_space *space,
		      const struct mt_story *story, uint64_t stamp, enum mt_liveness_result result)
{
	switch (result) {
	case MT_LIVE_FLIPPED:
		write_story(repair, story, stamp);
		settle(repair, space, story->addr, false);
		break;
	case MT_LIVE_CONFLICT:
		park(repair, space, story, MT_PARKED_FREE, stamp);
		break;
	case MT_LIVE_INHERITED:
	case MT_LIVE_UNCHECKED:
		repair->sink->stats.unchecked++;
		write_story(repair, story, stamp);
		break;
	}
}

static struct mt_story story_of(const struct mt_origin *origin, enum mt_event_type type,
				uint64_t addr, uint64_t size)
{
	return (struct mt_story){
		.addr = addr,
		.size = size,
		.pid = origin->pid,
		.tid = origin->tid,
		.type = (uint8_t)type,
	};
}

static void simple_record(struct mt_repair *repair, struct mt_origin *origin,
			  const struct mt_rec *rec)
{
	unsigned kind = (unsigned)(rec->size_kind & 0xff);
	struct mt_story story;

	if (kind == MT_REC_FREE) {
		story = story_of(origin, MT_EVENT_FREE, rec->addr, 0);
		free_with(repair, origin->space, &story, rec->stamp,
			  mt_liveness_clear(&origin->space->live, rec->addr));
	} else {
		story = story_of(origin, (enum mt_event_type)kind, rec->addr, rec->size_kind >> 8);
		alloc_with(repair, origin->space, &story, rec->stamp,
			   mt_liveness_set(&origin->space->live, rec->addr));
	}
}

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
		settle(repair, origin->space, addr, true);
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

static void realloc_begin(struct mt_repair *repair, struct mt_origin *origin,
			  const struct mt_rec *rec)
{
	struct mt_story story = story_of(origin, MT_EVENT_FREE, rec->addr, 0);
	struct mt_space *space = origin->space;
	enum mt_liveness_result result;

	/* The end of an earlier one was lost, or a signal handler jumped out of it. */
	mt_origin_end(repair, origin);
	if (rec->addr == 0) {
		origin->begun = MT_BEGUN_NULL;
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
		force(repair, repair->shelf.oldest);
	origin->begin = mt_shelf_add(&repair->shelf, space, &story, MT_HELD_BEGIN);
	if (!origin->begin) {
		free_with(repair, space, &story, rec->stamp, result);
		origin->begun = MT_BEGUN_SPLIT;
		return;
	}
	origin->begin->origin = origin;
	origin->begun = MT_BEGUN_WATCHED;
	if (result == MT_LIVE_CONFLICT) {
		origin->begin->kind = MT_PARKED_BEGIN;
		origin->begin->swapped = took_its_place(repair, origin, rec->addr);
		park_watched(repair, origin->begin, rec->stamp);
	} else {
		settle(repair, space, rec->addr, false);
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
	park_watched(repair, begin, stamp);
	if (begin->kind == MT_PARKED_FREE)
		alloc_with(repair, origin->space, story, stamp,
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
		split_begin(repair, begin);
		origin->begun = MT_BEGUN_NOT;
		park(repair, space, story, MT_PARKED_ALLOC, stamp);
		return;
	}
	story->flags = MT_EVENT_HAS_OLD;
	story->old = begin->story.addr;
	origin->begin = NULL;
	origin->begun = MT_BEGUN_NOT;
	mt_shelf_remove(&repair->shelf, begin);
	if (result == MT_LIVE_FLIPPED && space->watched)
		split_held_at(repair, space, story->addr);
	count_result(repair, result);
	write_story(repair, story, stamp);
	if (result == MT_LIVE_FLIPPED)
		settle(repair, space, story->addr, true);
}

static void realloc_end(struct mt_repair *repair, struct mt_origin *origin,
			const struct mt_rec *rec)
{
	struct mt_story story = story_of(origin, MT_EVENT_REALLOC, rec->addr, rec->size_kind >> 8);

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
	alloc_with(repair, origin->space, &story, rec->stamp,
		   mt_liveness_set(&origin->space->live, rec->addr));
}

static void realloc_freed(struct mt_repair *repair, struct mt_origin *origin,
			  const struct mt_rec *rec)
{
	struct mt_watched *begin = origin->begin;
	enum mt_begun begun = (enum mt_begun)origin->begun;
	struct mt_story story = story_of(origin, MT_EVENT_FREE, rec->addr, 0);

	origin->begin = NULL;
	origin->begun = MT_BEGUN_NOT;
	if (begun == MT_BEGUN_SPLIT || begun == MT_BEGUN_NULL)
		return;
	if (begun != MT_BEGUN_WATCHED) {
		/* The begin was lost, or its region has no bits: this one record is the free. */
		free_with(repair, origin->space, &story, rec->stamp,
			  mt_liveness_clear(&origin->space->live, rec->addr));
		return;
	}
	if (begin->kind == MT_PARKED_BEGIN) {
		begin->kind = MT_PARKED_FREE; /* and waits on as one */
		begin->origin = NULL;
		mt_shelf_leave_parked(&repair->shelf, begin);
		park_watched(repair, begin, rec->stamp);
		return;
	}
	story.addr = begin->story.addr;
	mt_shelf_remove(&repair->shelf, begin);
	write_story(repair, &story, rec->stamp);
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
		realloc_begin(repair, origin, rec);
		break;
	case MT_REC_REALLOC_END:
		realloc_end(repair, origin, rec);
		break;
	case MT_REC_REALLOC_FAILED:
		if (origin->begin)
			restore_begin(repair, origin);
		origin->begun = MT_BEGUN_NOT;
		break;
	case MT_REC_REALLOC_FREED:
		realloc_freed(repair, origin, rec);
		break;
	case MT_REC_MMAP:
	case MT_REC_MUNMAP:
		story = story_of(origin, kind == MT_REC_MMAP ? MT_EVENT_MMAP : MT_EVENT_MUNMAP,
				 rec->addr, rec->size_kind >> 8);
		write_story(repair, &story, rec->stamp);
		break;
	}
}

void mt_repair_expire(struct mt_repair *repair, uint64_t stamp)
{
	while (repair->shelf.oldest &&
	       stamp > repair->shelf.oldest->stamp + repair->shelf.window_ticks)
		force(repair, repair->shelf.oldest);
}

void mt_repair_expire_idle(struct mt_repair *repair, uint64_t before_ns)
{
	while (repair->shelf.oldest && repair->shelf.oldest->parked_ns < before_ns)
		force(repair, repair->shelf.oldest);
}

void mt_repair_expire_all(struct mt_repair *repair)
{
	while (repair->shelf.oldest)
		force(repair, repair->shelf.oldest);
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
		force(repair, at);
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
