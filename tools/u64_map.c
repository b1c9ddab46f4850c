/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/u64_map.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define FIRST_SLOTS 64u

/* Nothing that is printed depends on the order of a table. */
uint64_t mt_u64_hash_seed = UINT64_C(0x5bd1e9955bd1e995);

/* Without random bytes the constant still serves files that are not hostile. */
__attribute__((constructor)) static void set_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
		mt_u64_hash_seed = seed;
}

void mt_u64_map_fini(struct mt_u64_map *map)
{
	free(map->keys);
	free(map->values);
	*map = (struct mt_u64_map){ 0 };
}

/* The slot that holds the key, or the empty one where it belongs. */
static size_t slot_of(const struct mt_u64_map *map, uint64_t key)
{
	size_t slot = mt_u64_hash(key) & map->mask;

	while (map->keys[slot] && map->keys[slot] != key)
		slot = (slot + 1) & map->mask;
	return slot;
}

uint32_t *mt_u64_map_get(const struct mt_u64_map *map, uint64_t key)
{
	size_t slot;

	if (!key)
		return map->has_zero ? (uint32_t *)&map->zero_value : NULL;
	if (!map->mask)
		return NULL;
	slot = slot_of(map, key);
	return map->keys[slot] ? &map->values[slot] : NULL;
}

static int grow(struct mt_u64_map *map)
{
	size_t slots = map->mask ? (map->mask + 1) * 2 : FIRST_SLOTS;
	struct mt_u64_map larger = *map;

	larger.mask = slots - 1;
	larger.keys = calloc(slots, sizeof(*larger.keys));
	larger.values = calloc(slots, sizeof(*larger.values));
	if (!larger.keys || !larger.values) {
		free(larger.keys);
		free(larger.values);
		return -ENOMEM;
	}
	for (size_t i = 0; map->mask && i <= map->mask; i++) {
		size_t slot;

		if (!map->keys[i])
			continue;
		slot = slot_of(&larger, map->keys[i]);
		larger.keys[slot] = map->keys[i];
		larger.values[slot] = map->values[i];
	}
	free(map->keys);
	free(map->values);
	*map = larger;
	return 0;
}

int mt_u64_map_put(struct mt_u64_map *map, uint64_t key, uint32_t value)
{
	uint32_t *found = mt_u64_map_get(map, key);
	size_t slot;
	int ret;

	if (found) {
		*found = value;
		return 0;
	}
	if (!key) {
		map->has_zero = 1;
		map->zero_value = value;
		return 1;
	}
	/* At most two thirds full. */
	if (!map->mask || (map->count + 1) * 3 > (map->mask + 1) * 2) {
		ret = grow(map);
		if (ret)
			return ret;
	}
	slot = slot_of(map, key);
	map->keys[slot] = key;
	map->values[slot] = value;
	map->count++;
	return 1;
}
