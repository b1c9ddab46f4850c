/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/live_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/live_page.h"
#include "tools/u64_map.h"

/* How many pages ahead are fetched by who goes over all of them. */
#define PAGES_AHEAD 24u

/* Only a file made for it, that also guessed the seed, comes here: pages then grow instead. */
#define MAX_DEPTH 24u

struct mt_live_directory {
	uint32_t refs; /* tables that hold it */
	uint32_t depth;
	struct mt_live_page *pages[]; /* 1 << depth; a page of less depth stands in a row of them */
};

static struct mt_live_directory *directory_alloc(uint32_t depth)
{
	struct mt_live_directory *directory;

	directory = malloc(sizeof(*directory) + (sizeof(struct mt_live_page *) << depth));
	if (!directory)
		return NULL;
	directory->refs = 1;
	directory->depth = depth;
	return directory;
}

static size_t directory_index(const struct mt_live_directory *directory, uint64_t hash)
{
	/* Two shifts, since one by 64 is not defined. */
	return (size_t)(hash >> 1 >> (63 - directory->depth));
}

/*
 * Goes over the pages, each once: its row is as long as the directory is deeper than the page. Each
 * is a miss of memory in a large heap; those ahead are fetched meanwhile.
 */
static size_t next_page(const struct mt_live_directory *directory, size_t index)
{
	size_t ahead = index + PAGES_AHEAD;

	if (!(ahead >> directory->depth))
		__builtin_prefetch(directory->pages[ahead], 1);
	return index + ((size_t)1 << (directory->depth - directory->pages[index]->depth));
}

static void directory_put(struct mt_live_directory *directory)
{
	size_t entries = (size_t)1 << directory->depth;

	if (--directory->refs)
		return;
	for (size_t i = 0; i < entries;) {
		size_t next = next_page(directory, i);

		mt_live_page_put(directory->pages[i]);
		i = next;
	}
	free(directory);
}

void mt_live_table_fini(struct mt_live_table *table)
{
	if (table->directory)
		directory_put(table->directory);
	table->directory = NULL;
}

void mt_live_table_share(struct mt_live_table *table, const struct mt_live_table *of)
{
	assert(!table->directory);
	table->directory = of->directory;
	if (of->directory)
		of->directory->refs++;
}

/* Makes the directory this table's own. */
static int own_directory(struct mt_live_table *table)
{
	struct mt_live_directory *shared = table->directory;
	struct mt_live_directory *own;
	size_t entries;

	if (!shared) {
		own = directory_alloc(0);
		if (!own)
			return -ENOMEM;
		own->pages[0] = mt_live_page_new(table->arena, MT_LIVE_FIRST_BUCKETS, 0);
		if (!own->pages[0]) {
			free(own);
			return -ENOMEM;
		}
		table->directory = own;
		return 0;
	}
	if (shared->refs == 1)
		return 0;
	own = directory_alloc(shared->depth);
	if (!own)
		return -ENOMEM;
	entries = (size_t)1 << shared->depth;
	memcpy(own->pages, shared->pages, entries * sizeof(own->pages[0]));
	for (size_t i = 0; i < entries; i = next_page(own, i))
		own->pages[i]->refs++;
	shared->refs--;
	table->directory = own;
	return 0;
}

/* Puts `page` wherever `old` of the same depth stands; `index` is one such place. */
static void replace_page(struct mt_live_directory *directory, size_t index,
			 struct mt_live_page *page)
{
	size_t row = (size_t)1 << (directory->depth - page->depth);
	size_t first = index & ~(row - 1);

	for (size_t i = 0; i < row; i++)
		directory->pages[first + i] = page;
}

/* Makes the page at `index` of an own directory this table's own. */
static int own_page(struct mt_live_table *table, size_t index)
{
	struct mt_live_page *shared = table->directory->pages[index];
	struct mt_live_page *own;

	if (shared->refs == 1)
		return 0;
	own = mt_live_page_copy(table->arena, shared);
	if (!own)
		return -ENOMEM;
	mt_live_page_put(shared);
	replace_page(table->directory, index, own);
	return 0;
}

static int double_directory(struct mt_live_table *table)
{
	struct mt_live_directory *old = table->directory;
	struct mt_live_directory *larger = directory_alloc(old->depth + 1);

	if (!larger)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)1 << larger->depth; i++)
		larger->pages[i] = old->pages[i / 2];
	free(old);
	table->directory = larger;
	return 0;
}

/* Doubles an own page in place of itself. */
static int grow_page(struct mt_live_table *table, size_t index)
{
	struct mt_live_page *old = table->directory->pages[index];
	struct mt_live_page *larger =
		mt_live_page_new(table->arena, (old->mask + 1) * 2, old->depth);

	if (!larger)
		return -ENOMEM;
	for (uint32_t i = 0; i <= old->mask; i++)
		for (unsigned slot = 0; slot < MT_LIVE_BUCKET_SLOTS; slot++)
			if (old->buckets[i].used >> slot & 1)
				mt_live_page_move(larger, &old->buckets[i], slot,
						  mt_u64_hash(old->buckets[i].addrs[slot]));
	replace_page(table->directory, index, larger);
	mt_live_page_put(old);
	return 0;
}

/* Splits an own page by the next bit of the hash. */
static int split_page(struct mt_live_table *table, size_t index)
{
	struct mt_live_directory *directory = table->directory;
	struct mt_live_page *old = directory->pages[index], *half[2];
	size_t row = (size_t)1 << (directory->depth - old->depth);
	size_t first = index & ~(row - 1);

	half[0] = mt_live_page_new(table->arena, old->mask + 1, old->depth + 1);
	if (!half[0])
		return -ENOMEM;
	half[1] = mt_live_page_new(table->arena, old->mask + 1, old->depth + 1);
	if (!half[1]) {
		mt_live_page_put(half[0]);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i <= old->mask; i++) {
		const struct mt_live_bucket *bucket = &old->buckets[i];

		for (unsigned slot = 0; slot < MT_LIVE_BUCKET_SLOTS; slot++) {
			uint64_t hash = mt_u64_hash(bucket->addrs[slot]);

			if (bucket->used >> slot & 1)
				mt_live_page_move(half[hash >> (63 - old->depth) & 1], bucket, slot,
						  hash);
		}
	}
	for (size_t i = 0; i < row; i++)
		directory->pages[first + i] = half[i >= row / 2];
	mt_live_page_put(old);
	return 0;
}

/* Makes room in the page that the hash belongs to; the directory and the page are own. */
static int make_room(struct mt_live_table *table, uint64_t hash)
{
	size_t index = directory_index(table->directory, hash);
	struct mt_live_page *page = table->directory->pages[index];
	int ret;

	if (page->mask + 1 < MT_LIVE_PAGE_BUCKETS || page->depth == MAX_DEPTH) {
		if (page->mask >= UINT32_MAX / 2 / MT_LIVE_BUCKET_SLOTS)
			return -ENOMEM;
		return grow_page(table, index);
	}
	if (page->depth == table->directory->depth) {
		ret = double_directory(table);
		if (ret)
			return ret;
		index = directory_index(table->directory, hash);
	}
	return split_page(table, index);
}

/* The page that the hash belongs to; the table is not empty. */
static inline struct mt_live_page *page_of(const struct mt_live_table *table, uint64_t hash)
{
	return table->directory->pages[directory_index(table->directory, hash)];
}

/* Makes the page that the hash belongs to this table's own. */
static int own_page_of(struct mt_live_table *table, uint64_t hash)
{
	int ret = own_directory(table);

	return ret ? ret : own_page(table, directory_index(table->directory, hash));
}

/* The page that the hash belongs to, made this table's own. */
static inline int page_to_change(struct mt_live_table *table, uint64_t hash,
				 struct mt_live_page **ret_page)
{
	int ret = 0;

	if (!table->directory || table->directory->refs > 1 || page_of(table, hash)->refs > 1)
		ret = own_page_of(table, hash);
	if (!ret)
		*ret_page = page_of(table, hash);
	return ret;
}

/* Puts an entry in that is not there. */
static int add_entry(struct mt_live_table *table, const struct mt_live_entry *entry, uint64_t hash)
{
	struct mt_live_page *page;
	int ret;

	for (;;) {
		ret = page_to_change(table, hash, &page);
		if (ret)
			return ret;
		if (!mt_live_page_is_full(page))
			break;
		ret = make_room(table, hash);
		if (ret)
			return ret;
	}
	mt_live_page_add(page, entry, hash);
	return 0;
}

/* The bits above the small ones of a big block, and takes their entry out when `take` says so. */
static uint64_t high_bits(struct mt_live_page *page, uint64_t addr, uint64_t hash, bool take)
{
	struct mt_live_place place = mt_live_page_find(page, addr, hash, true);
	uint64_t bits;

	assert(place.bucket);
	bits = (uint64_t)place.bucket->owners[place.slot] << MT_LIVE_SMALL_BITS |
	       mt_live_bucket_size(place.bucket, place.slot);
	if (take)
		mt_live_page_take(page, &place, hash);
	return bits << MT_LIVE_SMALL_BITS;
}

static int add_high(struct mt_live_table *table, const struct mt_live_block *block, uint64_t hash)
{
	uint64_t bits = block->size >> MT_LIVE_SMALL_BITS;
	const struct mt_live_entry entry = { .addr = block->addr,
					     .owner = (uint32_t)(bits >> MT_LIVE_SMALL_BITS),
					     .size = (uint32_t)bits,
					     .high = true };

	return add_entry(table, &entry, hash);
}

/* The block at this place; with `take` it is taken out, and its page is the table's own. */
static inline void read_block(struct mt_live_page *page, const struct mt_live_place *place,
			      uint64_t hash, bool take, struct mt_live_block *ret_block)
{
	const struct mt_live_bucket *bucket = place->bucket;
	bool big = bucket->big >> place->slot & 1;

	ret_block->addr = bucket->addrs[place->slot];
	ret_block->size = mt_live_bucket_size(bucket, place->slot);
	ret_block->owner = bucket->owners[place->slot];
	if (take)
		mt_live_page_take(page, place, hash);
	if (big)
		ret_block->size |= high_bits(page, ret_block->addr, hash, take);
}

int mt_live_table_insert(struct mt_live_table *table, const struct mt_live_block *block,
			 struct mt_live_block *ret_old)
{
	uint64_t hash = mt_u64_hash(block->addr);
	const struct mt_live_entry entry = { .addr = block->addr,
					     .owner = block->owner,
					     .size = (uint32_t)block->size & MT_LIVE_SMALL_MASK,
					     .big = block->size >> MT_LIVE_SMALL_BITS != 0 };
	struct mt_live_page *page;
	struct mt_live_place place;
	int ret = page_to_change(table, hash, &page);
	int was_there = 0;

	if (ret)
		return ret;
	place = mt_live_page_find(page, block->addr, hash, false);
	if (place.bucket) {
		read_block(page, &place, hash, true, ret_old);
		was_there = 1;
	} else if (!entry.big && !mt_live_page_is_full(page)) {
		mt_live_page_add(page, &entry, hash);
		return 0;
	}
	if (entry.big)
		ret = add_high(table, block, hash);
	if (!ret)
		ret = add_entry(table, &entry, hash);
	return ret ? ret : was_there;
}

bool mt_live_table_find(const struct mt_live_table *table, uint64_t addr,
			struct mt_live_block *ret_block)
{
	uint64_t hash = mt_u64_hash(addr);
	struct mt_live_place place = { 0 };
	struct mt_live_page *page = NULL;

	if (table->directory) {
		page = page_of(table, hash);
		place = mt_live_page_find(page, addr, hash, false);
	}
	if (place.bucket)
		read_block(page, &place, hash, false, ret_block);
	return place.bucket;
}

int mt_live_table_remove(struct mt_live_table *table, uint64_t addr, struct mt_live_block *ret_old)
{
	uint64_t hash = mt_u64_hash(addr);
	struct mt_live_place place;
	struct mt_live_page *page;
	int ret;

	if (!table->directory)
		return 0;
	page = page_of(table, hash);
	place = mt_live_page_find(page, addr, hash, false);
	/* Looks first: what is not there makes no copy. */
	if (!place.bucket)
		return 0;
	if (table->directory->refs > 1 || page->refs > 1) {
		ret = page_to_change(table, hash, &page);
		if (ret)
			return ret;
		place = mt_live_page_find(page, addr, hash, false);
	}
	read_block(page, &place, hash, true, ret_old);
	return 1;
}

bool mt_live_table_toggle(struct mt_live_table *table, uint64_t hash, bool begins,
			  struct mt_live_block *block)
{
	struct mt_live_bucket *bucket;
	unsigned equal, slots, slot;
	struct mt_live_page *page;
	uint32_t size, owner;

	if (!table->directory)
		return false;
	page = page_of(table, hash);
	bucket = &page->buckets[(uint32_t)hash & page->mask];
	equal = mt_live_bucket_matches(bucket, block->addr, false);
	slots = begins ? ~(unsigned)bucket->used & ((1u << MT_LIVE_BUCKET_SLOTS) - 1) : equal;
	/* What begins must not be elsewhere, nor need the high entry that a big block has. */
	if (!slots ||
	    (begins && (equal | bucket->passed | (block->size >> MT_LIVE_SMALL_BITS) |
			mt_live_page_is_full(page))) ||
	    (bucket->big & slots) || table->directory->refs > 1 || page->refs > 1)
		return false;
	slot = (unsigned)__builtin_ctz(slots);
	size = mt_live_bucket_size(bucket, slot);
	owner = bucket->owners[slot];
	/* Of an entry that ends, nothing is read any more. */
	mt_live_bucket_write(bucket, slot, block->addr, block->owner, (uint32_t)block->size);
	bucket->used ^= (uint8_t)(1u << slot);
	page->count += begins * 2u - 1;
	block->size = begins ? block->size : size;
	block->owner = begins ? block->owner : owner;
	return true;
}

uint64_t mt_live_table_prefetch(const struct mt_live_table *table, uint64_t addr)
{
	uint64_t hash = mt_u64_hash(addr);
	const struct mt_live_page *page;

	if (!table || !table->directory)
		return hash;
	page = page_of(table, hash);
	__builtin_prefetch(page, 1);
	/* For a page of full size this is the bucket; a smaller one is warm anyway. */
	__builtin_prefetch(
		(const char *)page + mt_live_page_bytes(hash & (MT_LIVE_PAGE_BUCKETS - 1)), 1);
	return hash;
}
