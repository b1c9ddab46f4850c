/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which addresses of a process hold a live block: one bit for each 8 bytes, kept for the 2 MiB
 * regions that blocks were seen in (32 KiB of bits each), found through a hash table.
 *
 * A fork copies nothing: table and regions are shared and copied when one side writes. What the
 * child had at its fork is remembered beside it (the inherited bits, shared with the parent's
 * regions as well), since an allocation over an inherited block is no contradiction: the copy ends
 * silently, other threads of the parent having gone on during the fork.
 *
 * At the budget's limit regions lose their bits; events there are UNCHECKED from then on.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_LIVENESS_H
#define MT_SIDECAR_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_REGION_SHIFT 21
#define MT_REGION_WORDS 4096u /* 64 bits each, 8 bytes of address space a bit */

struct mt_region {
	uint32_t refs;
	uint32_t used; /* since the hand of its table passed */
	uint32_t reserved[14];
	uint64_t words[MT_REGION_WORDS];
};

struct mt_region_entry {
	uint64_t key;		  /* address >> MT_REGION_SHIFT, plus 1; 0: empty */
	struct mt_region *region; /* NULL: unchecked */
};

struct mt_region_table {
	uint32_t refs;
	uint32_t count;
	uint32_t mask;
	uint32_t hand; /* where the search for a region to give up goes on */
	struct mt_region_entry entries[];
};

/* Memory over all processes. */
struct mt_liveness_budget {
	uint64_t max_bytes;
	uint64_t bytes;
};

struct mt_liveness {
	struct mt_liveness_budget *budget;
	/* The region used last, when it is ours to write. */
	uint64_t last_key;
	struct mt_region *last;
	struct mt_region_table *live;
	struct mt_region_table *inherited; /* NULL: nothing was */
	bool blind; /* memory was short once, bits are missing: nothing is checked any more */
};

enum mt_liveness_result {
	MT_LIVE_FLIPPED,   /* the bit changed as the event says */
	MT_LIVE_CONFLICT,  /* the bit contradicts the event */
	MT_LIVE_INHERITED, /* set: over an inherited block, whose copy ended; the bit stays set */
	MT_LIVE_UNCHECKED, /* no bits there */
};

void mt_liveness_init(struct mt_liveness *live, struct mt_liveness_budget *budget);
void mt_liveness_fini(struct mt_liveness *live);

/* Makes child, not initialised, what a fork of parent leaves in the child. */
void mt_liveness_fork(struct mt_liveness *parent, struct mt_liveness *child);

/* The region of an address, ours to write; NULL: unchecked. For the inlines below. */
struct mt_region *mt_liveness_region(struct mt_liveness *live, uint64_t addr);

/* Was addr inherited and is it so still? Clears the mark. */
bool mt_liveness_take_inherited(struct mt_liveness *live, uint64_t addr);

static inline struct mt_region *mt_liveness_find(struct mt_liveness *live, uint64_t addr)
{
	if (__builtin_expect((addr >> MT_REGION_SHIFT) + 1 == live->last_key, 1))
		return live->last;
	return mt_liveness_region(live, addr);
}

static inline uint64_t *mt_region_word(struct mt_region *region, uint64_t addr)
{
	return &region->words[(addr >> 9) & (MT_REGION_WORDS - 1)];
}

static inline uint64_t mt_region_bit(uint64_t addr)
{
	return UINT64_C(1) << ((addr >> 3) & 63);
}

/* An allocation at addr. */
static inline enum mt_liveness_result mt_liveness_set(struct mt_liveness *live, uint64_t addr)
{
	struct mt_region *region = mt_liveness_find(live, addr);
	uint64_t *word, bit = mt_region_bit(addr);

	if (__builtin_expect(!region, 0))
		return MT_LIVE_UNCHECKED;
	word = mt_region_word(region, addr);
	if (__builtin_expect((*word & bit) != 0, 0)) {
		if (live->inherited && mt_liveness_take_inherited(live, addr))
			return MT_LIVE_INHERITED;
		return MT_LIVE_CONFLICT;
	}
	*word |= bit;
	if (__builtin_expect(live->inherited != NULL, 0))
		mt_liveness_take_inherited(live, addr);
	return MT_LIVE_FLIPPED;
}

/* A free at addr. */
static inline enum mt_liveness_result mt_liveness_clear(struct mt_liveness *live, uint64_t addr)
{
	struct mt_region *region = mt_liveness_find(live, addr);
	uint64_t *word, bit = mt_region_bit(addr);

	if (__builtin_expect(!region, 0))
		return MT_LIVE_UNCHECKED;
	word = mt_region_word(region, addr);
	if (__builtin_expect((*word & bit) == 0, 0))
		return MT_LIVE_CONFLICT;
	*word &= ~bit;
	return MT_LIVE_FLIPPED;
}

/*
 * Flips the bit of addr when it is as an allocation (or a free) wants to find it, without a branch
 * on which of the two it is: they come as a coin falls. False, and nothing changed: the caller has
 * to look closer (contradiction, inherited blocks, no bits).
 */
static inline bool mt_liveness_flip(struct mt_liveness *live, uint64_t addr, bool is_free)
{
	struct mt_region *region = mt_liveness_find(live, addr);
	uint64_t *word;

	if (__builtin_expect(!region || live->inherited, 0))
		return false;
	word = mt_region_word(region, addr);
	if (__builtin_expect((*word >> ((addr >> 3) & 63) & 1) != is_free, 0))
		return false;
	*word ^= mt_region_bit(addr);
	return true;
}

#endif
