/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The heads of the streams that are merged, the smallest stamp first: a binary heap. A reader is
 * taken from for as long as its stamps stay below the runner-up's, so threads that run for a while
 * cost one comparison an event.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_MERGE_H
#define MT_SIDECAR_MERGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct mt_reader;

struct mt_merge_head {
	uint64_t stamp;
	struct mt_reader *reader; /* NULL: the kernel's events */
};

struct mt_merge {
	struct mt_merge_head *heads;
	uint32_t count, space;
};

static inline void mt_merge_fini(struct mt_merge *merge)
{
	free(merge->heads);
}

/* Room for `count` heads. False: out of memory. */
static inline bool mt_merge_reserve(struct mt_merge *merge, uint32_t count)
{
	uint32_t space = merge->space ? merge->space : 64;
	struct mt_merge_head *heads;

	if (count <= merge->space)
		return true;
	while (space < count)
		space *= 2;
	heads = realloc(merge->heads, space * sizeof(*heads));
	if (!heads)
		return false;
	merge->heads = heads;
	merge->space = space;
	return true;
}

/* The stamp after the smallest; UINT64_MAX when there is none. */
static inline uint64_t mt_merge_runner_up(const struct mt_merge *merge)
{
	const struct mt_merge_head *heads = merge->heads;

	if (merge->count < 2)
		return UINT64_MAX;
	if (merge->count == 2 || heads[1].stamp <= heads[2].stamp)
		return heads[1].stamp;
	return heads[2].stamp;
}

/* Puts a head where the smallest was. */
static inline void mt_merge_replace(struct mt_merge *merge, struct mt_merge_head head)
{
	struct mt_merge_head *heads = merge->heads;
	uint32_t count = merge->count, at = 0, child;

	for (; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count)
			child += heads[child + 1].stamp < heads[child].stamp;
		if (heads[child].stamp >= head.stamp)
			break;
		heads[at] = heads[child];
	}
	heads[at] = head;
}

static inline void mt_merge_pop(struct mt_merge *merge)
{
	merge->count--;
	if (merge->count > 0)
		mt_merge_replace(merge, merge->heads[merge->count]);
}

/* There must be room (mt_merge_reserve). */
static inline void mt_merge_push(struct mt_merge *merge, struct mt_merge_head head)
{
	struct mt_merge_head *heads = merge->heads;
	uint32_t at = merge->count++;

	while (at > 0 && heads[(at - 1) / 2].stamp > head.stamp) {
		heads[at] = heads[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heads[at] = head;
}

#endif
