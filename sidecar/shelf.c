/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/shelf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sidecar/patience.h"

void mt_shelf_init(struct mt_shelf *shelf, uint64_t window_ticks)
{
	memset(shelf, 0, sizeof(*shelf));
	shelf->deadline = UINT64_MAX;
	shelf->window_ticks = window_ticks;
}

void mt_shelf_fini(struct mt_shelf *shelf)
{
	struct mt_watched *watched;

	while ((watched = shelf->unused) != NULL) {
		shelf->unused = watched->next;
		free(watched);
	}
	for (unsigned i = 0; i < MT_SHELF_BUCKETS; i++) {
		while ((watched = shelf->buckets[i]) != NULL) {
			shelf->buckets[i] = watched->next;
			free(watched);
		}
	}
}

static struct mt_watched **bucket_of(struct mt_shelf *shelf, const struct mt_space *space,
				     uint64_t addr)
{
	uint64_t key = (addr >> 3) ^ ((uint64_t)(uintptr_t)space >> 4);

	return &shelf->buckets[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

static_assert(MT_SHELF_BUCKETS == 1u << (64 - 52), "the hash gives 12 bits");

/* The one watched longest. */
struct mt_watched *mt_shelf_find(struct mt_shelf *shelf, const struct mt_space *space,
				 uint64_t addr, unsigned kinds)
{
	struct mt_watched *found = NULL;

	for (struct mt_watched *at = *bucket_of(shelf, space, addr); at; at = at->next)
		if (at->space == space && at->story.addr == addr && (kinds & 1u << at->kind))
			found = at;
	return found;
}

static void set_deadline(struct mt_shelf *shelf)
{
	shelf->deadline = shelf->oldest ? shelf->oldest->stamp + shelf->window_ticks : UINT64_MAX;
}

void mt_shelf_leave_parked(struct mt_shelf *shelf, struct mt_watched *watched)
{
	if (!watched->parked)
		return;
	watched->parked = false;
	if (watched->older)
		watched->older->newer = watched->newer;
	else
		shelf->oldest = watched->newer;
	if (watched->newer)
		watched->newer->older = watched->older;
	else
		shelf->newest = watched->older;
	shelf->parked--;
	set_deadline(shelf);
}

void mt_shelf_remove(struct mt_shelf *shelf, struct mt_watched *watched)
{
	struct mt_watched **at = bucket_of(shelf, watched->space, watched->story.addr);

	while (*at != watched)
		at = &(*at)->next;
	*at = watched->next;
	mt_shelf_leave_parked(shelf, watched);
	watched->space->watched--;
	watched->next = shelf->unused;
	shelf->unused = watched;
}

struct mt_watched *mt_shelf_add(struct mt_shelf *shelf, struct mt_space *space,
				const struct mt_story *story, enum mt_watched_kind kind)
{
	struct mt_watched *watched = shelf->unused;
	struct mt_watched **bucket = bucket_of(shelf, space, story->addr);

	if (watched)
		shelf->unused = watched->next;
	else
		watched = mt_patient_malloc(sizeof(*watched));
	if (!watched)
		return NULL;
	*watched = (struct mt_watched){ .space = space, .story = *story, .kind = kind };
	watched->next = *bucket;
	*bucket = watched;
	space->watched++;
	return watched;
}

void mt_shelf_park(struct mt_shelf *shelf, struct mt_watched *watched, uint64_t stamp)
{
	watched->parked = true;
	watched->stamp = stamp;
	watched->parked_ns = shelf->now_ns;
	watched->older = shelf->newest;
	watched->newer = NULL;
	if (shelf->newest)
		shelf->newest->newer = watched;
	else
		shelf->oldest = watched;
	shelf->newest = watched;
	shelf->parked++;
	set_deadline(shelf);
}

struct mt_space *mt_space_new(struct mt_liveness_budget *budget)
{
	struct mt_space *space = mt_patient_calloc(1, sizeof(*space));

	if (space)
		mt_liveness_init(&space->live, budget);
	return space;
}

/* Sets or clears the bits of old blocks whose realloc is under way. */
static void flip_held(struct mt_shelf *shelf, struct mt_space *space, bool set)
{
	for (unsigned i = 0; i < MT_SHELF_BUCKETS; i++) {
		for (struct mt_watched *at = shelf->buckets[i]; at; at = at->next) {
			if (at->space != space || at->kind != MT_HELD_BEGIN)
				continue;
			if (set)
				mt_liveness_set(&space->live, at->story.addr);
			else
				mt_liveness_clear(&space->live, at->story.addr);
		}
	}
}

struct mt_space *mt_space_fork(struct mt_shelf *shelf, struct mt_space *parent)
{
	struct mt_space *child = mt_patient_calloc(1, sizeof(*child));

	if (!child)
		return NULL;
	/* No Free was written for a held begin, so readers see the block in the child too. */
	if (parent->watched)
		flip_held(shelf, parent, true);
	mt_liveness_fork(&parent->live, &child->live);
	if (parent->watched)
		flip_held(shelf, parent, false);
	return child;
}
