/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/liveness.h"

#include <stdlib.h>
#include <string.h>

#include "sidecar/patience.h"

#define TABLE_ENTRIES_FIRST 16u

static size_t table_bytes(uint32_t entries)
{
	return sizeof(struct mt_region_table) + (size_t)entries * sizeof(struct mt_region_entry);
}

static uint32_t hash(uint64_t key, uint32_t mask)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & mask;
}

static bool spend(struct mt_liveness_budget *budget, uint64_t bytes)
{
	if (budget->bytes + bytes > budget->max_bytes)
		return false;
	budget->bytes += bytes;
	return true;
}

static struct mt_region *region_new(struct mt_liveness_budget *budget,
				    const struct mt_region *copied)
{
	struct mt_region *region;

	if (!spend(budget, sizeof(*region)))
		return NULL;
	region = mt_patient_aligned(64, sizeof(*region));
	if (!region) {
		budget->bytes -= sizeof(*region);
		return NULL;
	}
	if (copied)
		memcpy(region->words, copied->words, sizeof(region->words));
	else
		memset(region->words, 0, sizeof(region->words));
	region->refs = 1;
	region->used = 1;
	return region;
}

static void region_put(struct mt_liveness_budget *budget, struct mt_region *region)
{
	if (!region || --region->refs != 0)
		return;
	budget->bytes -= sizeof(*region);
	free(region);
}

/* Tables are outside the limit (16 bytes for 32 KiB of bits), but are counted. */
static struct mt_region_table *table_new(struct mt_liveness_budget *budget, uint32_t entries)
{
	struct mt_region_table *table = mt_patient_calloc(1, table_bytes(entries));

	if (!table)
		return NULL;
	table->refs = 1;
	table->mask = entries - 1;
	budget->bytes += table_bytes(entries);
	return table;
}

static void table_put(struct mt_liveness_budget *budget, struct mt_region_table *table)
{
	if (!table || --table->refs != 0)
		return;
	for (uint32_t i = 0; i <= table->mask; i++)
		region_put(budget, table->entries[i].region);
	budget->bytes -= table_bytes(table->mask + 1);
	free(table);
}

static struct mt_region_entry *table_slot(struct mt_region_table *table, uint64_t key)
{
	uint32_t at = hash(key, table->mask);

	while (table->entries[at].key != 0 && table->entries[at].key != key)
		at = (at + 1) & table->mask;
	return &table->entries[at];
}

/* A table of our own with the same entries and room for one more; takes the reference over. */
static struct mt_region_table *table_own(struct mt_liveness_budget *budget,
					 struct mt_region_table *old)
{
	bool full = (old->count + 1) * 4 > (old->mask + 1) * 3;
	struct mt_region_table *table;

	if (old->refs == 1 && !full)
		return old;
	table = table_new(budget, full ? (old->mask + 1) * 2 : old->mask + 1);
	if (!table)
		return NULL;
	for (uint32_t i = 0; i <= old->mask; i++) {
		if (old->entries[i].key == 0)
			continue;
		*table_slot(table, old->entries[i].key) = old->entries[i];
		if (old->entries[i].region)
			old->entries[i].region->refs++;
	}
	table->count = old->count;
	table_put(budget, old);
	return table;
}

void mt_liveness_init(struct mt_liveness *live, struct mt_liveness_budget *budget)
{
	memset(live, 0, sizeof(*live));
	live->budget = budget;
}

void mt_liveness_fini(struct mt_liveness *live)
{
	if (live->budget) {
		table_put(live->budget, live->live);
		table_put(live->budget, live->inherited);
	}
	memset(live, 0, sizeof(*live));
}

void mt_liveness_fork(struct mt_liveness *parent, struct mt_liveness *child)
{
	mt_liveness_init(child, parent->budget);
	parent->last_key = 0; /* shared from now on: the next write copies */
	parent->last = NULL;
	child->live = parent->live;
	child->inherited = parent->live;
	child->blind = parent->blind;
	if (parent->live)
		parent->live->refs += 2;
}

/*
 * Gives up the bits of a region that was not used lately (second chance), so that `keep` can have
 * some. Shared regions stay: nothing would be gained.
 */
static bool give_up_region(struct mt_liveness *live, uint64_t keep)
{
	struct mt_region_table *table = live->live;

	for (uint64_t i = 0; i < 2 * ((uint64_t)table->mask + 1); i++) {
		struct mt_region_entry *entry = &table->entries[table->hand++ & table->mask];

		if (!entry->region || entry->key == keep || entry->region->refs != 1)
			continue;
		if (entry->region->used) {
			entry->region->used = 0;
			continue;
		}
		region_put(live->budget, entry->region);
		entry->region = NULL;
		if (entry->key == live->last_key)
			live->last_key = 0;
		return true;
	}
	return false;
}

static struct mt_region *region_make(struct mt_liveness *live, uint64_t key,
				     const struct mt_region *copied)
{
	struct mt_region *region = region_new(live->budget, copied);

	if (!region && give_up_region(live, key))
		region = region_new(live->budget, copied);
	return region;
}

struct mt_region *mt_liveness_region(struct mt_liveness *live, uint64_t addr)
{
	uint64_t key = (addr >> MT_REGION_SHIFT) + 1;
	struct mt_region_table *table = live->live;
	struct mt_region_entry *entry;

	if (live->blind)
		return NULL;
	if (table && table->refs == 1) {
		entry = table_slot(table, key);
		if (entry->key == key && (!entry->region || entry->region->refs == 1))
			goto out;
	}
	table = table ? table_own(live->budget, table)
		      : table_new(live->budget, TABLE_ENTRIES_FIRST);
	if (!table) {
		live->blind = true;
		live->last_key = 0;
		return NULL;
	}
	live->live = table;
	entry = table_slot(table, key);
	if (entry->key == 0) {
		entry->key = key;
		table->count++;
		entry->region = region_make(live, key, NULL);
	} else if (entry->region && entry->region->refs > 1) {
		struct mt_region *copy = region_make(live, key, entry->region);

		region_put(live->budget, entry->region);
		entry->region = copy;
	}
out:
	live->last_key = key;
	live->last = entry->region;
	if (entry->region)
		entry->region->used = 1;
	return entry->region;
}

bool mt_liveness_take_inherited(struct mt_liveness *live, uint64_t addr)
{
	uint64_t key = (addr >> MT_REGION_SHIFT) + 1, bit = mt_region_bit(addr);
	struct mt_region_entry *entry = table_slot(live->inherited, key);
	struct mt_region_table *own;
	struct mt_region *copy;

	if (!entry->region || !(*mt_region_word(entry->region, addr) & bit))
		return false;
	own = table_own(live->budget, live->inherited);
	if (!own)
		return true;
	live->inherited = own;
	entry = table_slot(own, key);
	if (entry->region->refs > 1) {
		copy = region_new(live->budget, entry->region);
		region_put(live->budget, entry->region);
		entry->region = copy; /* without memory: nothing there counts as inherited */
	}
	if (entry->region)
		*mt_region_word(entry->region, addr) &= ~bit;
	return true;
}
