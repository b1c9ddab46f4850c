/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A map from 64-bit keys to 32-bit values, open addressing. Used as a set by those who do not care
 * for the value. Grows only; the keys may come from an untrusted file, so the hash is seeded.
 *
 * Thread rule: one thread at a time. A zeroed map is empty and valid.
 */
#ifndef MT_TOOLS_U64_MAP_H
#define MT_TOOLS_U64_MAP_H

#include <stddef.h>
#include <stdint.h>

struct mt_u64_map {
	uint64_t *keys;	  /* 0 is empty; the key 0 itself stands apart */
	uint32_t *values; /* beside keys */
	size_t count;	  /* keys in the table, without the key 0 */
	size_t mask;	  /* slots - 1; 0: no table yet */
	uint32_t zero_value;
	uint32_t has_zero;
};

void mt_u64_map_fini(struct mt_u64_map *map);

/* The value of the key, or NULL; valid until the next put. */
uint32_t *mt_u64_map_get(const struct mt_u64_map *map, uint64_t key);

/* Sets the value. Returns 1 when the key is new, 0 when it was there, or -ENOMEM. */
int mt_u64_map_put(struct mt_u64_map *map, uint64_t key, uint32_t value);

/* Set before main(): a file made to collide under one seed does not under another. */
extern uint64_t mt_u64_hash_seed;

/* Spreads all bits of the key over all bits of the result. */
static inline uint64_t mt_u64_hash(uint64_t key)
{
	uint64_t hash = (key ^ mt_u64_hash_seed) * UINT64_C(0x9e3779b97f4a7c15);

	hash ^= hash >> 32;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

#endif
