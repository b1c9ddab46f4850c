/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/live_table.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/u64_map.h"

/*
 * A page starts small, because most processes of a tree are, doubles up to PAGE_BUCKETS and is then
 * split. 128 buckets are 8 KiB: a copy takes less than a microsecond, and ten million blocks need a
 * directory of 32,768 entries.
 */
#define BUCKET_SLOTS  4u
#define FIRST_BUCKETS 2u
#define PAGE_BUCKETS  128u

/* How many pages ahead are fetched by who goes over all of them. */
#define PAGES_AHEAD 24u

/* Only a file made for it, that also guessed the seed, comes here: pages then grow instead. */
#define MAX_DEPTH 24u

/* A slot has room for so many bits of a size; those above them are in a second entry, a high one.
 */
#define SMALL_BITS 24u
#define SMALL_MASK ((1u << SMALL_BITS) - 1)

/*
 * An entry stands in the bucket that its hash picks or, when that is full, in the next with room.
 * A search goes on to the next bucket only while entries have been put past this one.
 */
struct bucket {
	uint64_t addrs[BUCKET_SLOTS];
	uint32_t owners[BUCKET_SLOTS];
	uint8_t sizes[BUCKET_SLOTS][3];
	uint8_t used;	/* bit i: slot i holds an entry */
	uint8_t high;	/* bit i: and it is a high one: owner and size hold what is above */
	uint8_t big;	/* bit i: there is a high entry of the same address */
	uint8_t passed; /* entries put past this bucket; once 255, it stays so */
};

static_assert(sizeof(struct bucket) == 64, "a bucket is a cache line");

struct page {
	uint32_t refs;	/* directories that hold it */
	uint32_t count; /* entries */
	uint32_t mask;	/* buckets - 1 */
	uint32_t depth; /* top bits of the hash that all its blocks share */
	alignas(64) struct bucket buckets[];
};

struct mt_live_directory {
	uint32_t refs; /* tables that hold it */
	uint32_t depth;
	struct page *pages[]; /* 1 << depth; a page of less depth stands in a row of them */
};

/* An entry as it moves between pages. */
struct entry {
	uint64_t addr;
	uint32_t owner;
	uint32_t size; /* the small bits */
	bool high;
	bool big;
};

/* Where an entry stands. */
struct place {
	struct bucket *bucket; /* NULL: nowhere */
	unsigned slot;
	uint32_t past; /* buckets before it that it was put past */
};

static size_t page_bytes(uint32_t buckets)
{
	return sizeof(struct page) + buckets * sizeof(struct bucket);
}

static struct page *page_new(uint32_t buckets, uint32_t depth)
{
	struct page *page = aligned_alloc(64, page_bytes(buckets));

	if (!page)
		return NULL;
	memset(page, 0, page_bytes(buckets));
	page->refs = 1;
	page->mask = buckets - 1;
	page->depth = depth;
	return page;
}

static void page_put(struct page *page)
{
	if (--page->refs == 0)
		free(page);
}

/* The slots that hold this address, as bits. */
static inline unsigned matches(const struct bucket *bucket, uint64_t addr, bool high)
{
	/* Written out, so that all four are compared without a branch. */
	unsigned equal = (unsigned)(bucket->addrs[0] == addr) |
			 (unsigned)(bucket->addrs[1] == addr) << 1 |
			 (unsigned)(bucket->addrs[2] == addr) << 2 |
			 (unsigned)(bucket->addrs[3] == addr) << 3;

	return equal & (high ? bucket->used & bucket->high : bucket->used & ~bucket->high);
}

static inline struct place page_find(struct page *page, uint64_t addr, uint64_t hash, bool high)
{
	struct place place = { 0 };

	for (; place.past <= page->mask; place.past++) {
		struct bucket *bucket = &page->buckets[((uint32_t)hash + place.past) & page->mask];
		unsigned equal = matches(bucket, addr, high);

		if (equal) {
			place.bucket = bucket;
			place.slot = (unsigned)__builtin_ctz(equal);
			return place;
		}
		if (!bucket->passed)
			break;
	}
	return place;
}

static inline uint32_t small_size(const struct bucket *bucket, unsigned slot)
{
	uint32_t bytes;

	/* One byte too many, which is in the bucket too. */
	memcpy(&bytes, bucket->sizes[slot], sizeof(bytes));
	return le32toh(bytes) & SMALL_MASK;
}

static inline void set_slot(struct bucket *bucket, unsigned slot, const struct entry *entry)
{
	uint32_t bytes = htole32(entry->size);
	uint8_t bit = (uint8_t)(1u << slot);

	bucket->addrs[slot] = entry->addr;
	bucket->owners[slot] = entry->owner;
	memcpy(bucket->sizes[slot], &bytes, sizeof(bucket->sizes[slot]));
	bucket->used |= bit;
	/* Slots that are not used have neither. */
	bucket->high |= entry->high ? bit : 0;
	bucket->big |= entry->big ? bit : 0;
}

/* For a page that is known to have room and not to have the entry. */
static inline void page_add(struct page *page, const struct entry *entry, uint64_t hash)
{
	struct bucket *bucket = &page->buckets[(uint32_t)hash & page->mask];
	unsigned slot;

	while (bucket->used == (1u << BUCKET_SLOTS) - 1) {
		bucket->passed += bucket->passed < UINT8_MAX;
		bucket = &page->buckets[((uint32_t)(bucket - page->buckets) + 1) & page->mask];
	}
	slot = (unsigned)__builtin_ctz(~(unsigned)bucket->used);
	set_slot(bucket, slot, entry);
	page->count++;
}

static inline void page_take(struct page *page, const struct place *place, uint64_t hash)
{
	uint8_t others = (uint8_t) ~(1u << place->slot);

	place->bucket->used &= others;
	place->bucket->high &= others;
	place->bucket->big &= others;
	for (uint32_t i = 0; i < place->past; i++) {
		struct bucket *bucket = &page->buckets[((uint32_t)hash + i) & page->mask];

		bucket->passed -= bucket->passed < UINT8_MAX;
	}
	page->count--;
}

/* Copies an entry to a page that has room for it. */
static void move_entry(struct page *to, const struct bucket *bucket, unsigned slot, uint64_t hash)
{
	const struct entry entry = { .addr = bucket->addrs[slot],
				     .owner = bucket->owners[slot],
				     .size = small_size(bucket, slot),
				     .high = bucket->high >> slot & 1,
				     .big = bucket->big >> slot & 1 };

	page_add(to, &entry, hash);
}

static struct mt_live_directory *directory_alloc(uint32_t depth)
{
	struct mt_live_directory *directory;

	directory = malloc(sizeof(*directory) + (sizeof(struct page *) << depth));
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

		page_put(directory->pages[i]);
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
		own->pages[0] = page_new(FIRST_BUCKETS, 0);
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
static void replace_page(struct mt_live_directory *directory, size_t index, struct page *page)
{
	size_t row = (size_t)1 << (directory->depth - page->depth);
	size_t first = index & ~(row - 1);

	for (size_t i = 0; i < row; i++)
		directory->pages[first + i] = page;
}

/* Makes the page at `index` of an own directory this table's own. */
static int own_page(struct mt_live_directory *directory, size_t index)
{
	struct page *shared = directory->pages[index];
	size_t bytes = page_bytes(shared->mask + 1);
	struct page *own;

	if (shared->refs == 1)
		return 0;
	own = aligned_alloc(64, bytes);
	if (!own)
		return -ENOMEM;
	memcpy(own, shared, bytes);
	own->refs = 1;
	shared->refs--;
	replace_page(directory, index, own);
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
static int grow_page(struct mt_live_directory *directory, size_t index)
{
	struct page *old = directory->pages[index];
	struct page *larger = page_new((old->mask + 1) * 2, old->depth);

	if (!larger)
		return -ENOMEM;
	for (uint32_t i = 0; i <= old->mask; i++)
		for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
			if (old->buckets[i].used >> slot & 1)
				move_entry(larger, &old->buckets[i], slot,
					   mt_u64_hash(old->buckets[i].addrs[slot]));
	replace_page(directory, index, larger);
	free(old);
	return 0;
}

/* Splits an own page by the next bit of the hash. */
static int split_page(struct mt_live_directory *directory, size_t index)
{
	struct page *old = directory->pages[index];
	struct page *half[2] = { page_new(old->mask + 1, old->depth + 1),
				 page_new(old->mask + 1, old->depth + 1) };
	size_t row = (size_t)1 << (directory->depth - old->depth);
	size_t first = index & ~(row - 1);

	if (!half[0] || !half[1]) {
		free(half[0]);
		free(half[1]);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i <= old->mask; i++) {
		const struct bucket *bucket = &old->buckets[i];

		for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
			uint64_t hash = mt_u64_hash(bucket->addrs[slot]);

			if (bucket->used >> slot & 1)
				move_entry(half[hash >> (63 - old->depth) & 1], bucket, slot, hash);
		}
	}
	for (size_t i = 0; i < row; i++)
		directory->pages[first + i] = half[i >= row / 2];
	free(old);
	return 0;
}

/* Makes room in the page that the hash belongs to; the directory and the page are own. */
static int make_room(struct mt_live_table *table, uint64_t hash)
{
	size_t index = directory_index(table->directory, hash);
	struct page *page = table->directory->pages[index];
	int ret;

	if (page->mask + 1 < PAGE_BUCKETS || page->depth == MAX_DEPTH) {
		if (page->mask >= UINT32_MAX / 2 / BUCKET_SLOTS)
			return -ENOMEM;
		return grow_page(table->directory, index);
	}
	if (page->depth == table->directory->depth) {
		ret = double_directory(table);
		if (ret)
			return ret;
		index = directory_index(table->directory, hash);
	}
	return split_page(table->directory, index);
}

static inline bool page_is_full(const struct page *page)
{
	/* At most three quarters: few entries are put past their bucket, and there always is room.
	 */
	return page->count >= (page->mask + 1) * BUCKET_SLOTS / 4 * 3;
}

/* The page that the hash belongs to; the table is not empty. */
static inline struct page *page_of(const struct mt_live_table *table, uint64_t hash)
{
	return table->directory->pages[directory_index(table->directory, hash)];
}

/* Makes the page that the hash belongs to this table's own. */
static int own_page_of(struct mt_live_table *table, uint64_t hash)
{
	int ret = own_directory(table);

	return ret ? ret : own_page(table->directory, directory_index(table->directory, hash));
}

/* The page that the hash belongs to, made this table's own. */
static inline int page_to_change(struct mt_live_table *table, uint64_t hash, struct page **ret_page)
{
	int ret = 0;

	if (!table->directory || table->directory->refs > 1 || page_of(table, hash)->refs > 1)
		ret = own_page_of(table, hash);
	if (!ret)
		*ret_page = page_of(table, hash);
	return ret;
}

/* Puts an entry in that is not there. */
static int add_entry(struct mt_live_table *table, const struct entry *entry, uint64_t hash)
{
	struct page *page;
	int ret;

	for (;;) {
		ret = page_to_change(table, hash, &page);
		if (ret)
			return ret;
		if (!page_is_full(page))
			break;
		ret = make_room(table, hash);
		if (ret)
			return ret;
	}
	page_add(page, entry, hash);
	return 0;
}

/* The bits above the small ones of a big block, and takes their entry out when `take` says so. */
static uint64_t high_bits(struct page *page, uint64_t addr, uint64_t hash, bool take)
{
	struct place place = page_find(page, addr, hash, true);
	uint64_t bits;

	assert(place.bucket);
	bits = (uint64_t)place.bucket->owners[place.slot] << SMALL_BITS |
	       small_size(place.bucket, place.slot);
	if (take)
		page_take(page, &place, hash);
	return bits << SMALL_BITS;
}

static int add_high(struct mt_live_table *table, const struct mt_live_block *block, uint64_t hash)
{
	uint64_t bits = block->size >> SMALL_BITS;
	const struct entry entry = { .addr = block->addr,
				     .owner = (uint32_t)(bits >> SMALL_BITS),
				     .size = (uint32_t)bits,
				     .high = true };

	return add_entry(table, &entry, hash);
}

/* The block at this place; with `take` it is taken out, and its page is the table's own. */
static inline void read_block(struct page *page, const struct place *place, uint64_t hash,
			      bool take, struct mt_live_block *ret_block)
{
	const struct bucket *bucket = place->bucket;
	bool big = bucket->big >> place->slot & 1;

	ret_block->addr = bucket->addrs[place->slot];
	ret_block->size = small_size(bucket, place->slot);
	ret_block->owner = bucket->owners[place->slot];
	if (take)
		page_take(page, place, hash);
	if (big)
		ret_block->size |= high_bits(page, ret_block->addr, hash, take);
}

int mt_live_table_insert(struct mt_live_table *table, const struct mt_live_block *block,
			 struct mt_live_block *ret_old)
{
	uint64_t hash = mt_u64_hash(block->addr);
	const struct entry entry = { .addr = block->addr,
				     .owner = block->owner,
				     .size = (uint32_t)block->size & SMALL_MASK,
				     .big = block->size >> SMALL_BITS != 0 };
	struct page *page;
	struct place place;
	int ret = page_to_change(table, hash, &page);
	int was_there = 0;

	if (ret)
		return ret;
	place = page_find(page, block->addr, hash, false);
	if (place.bucket) {
		read_block(page, &place, hash, true, ret_old);
		was_there = 1;
	} else if (!entry.big && !page_is_full(page)) {
		page_add(page, &entry, hash);
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
	struct place place = { 0 };
	struct page *page = NULL;

	if (table->directory) {
		page = page_of(table, hash);
		place = page_find(page, addr, hash, false);
	}
	if (place.bucket)
		read_block(page, &place, hash, false, ret_block);
	return place.bucket;
}

int mt_live_table_remove(struct mt_live_table *table, uint64_t addr, struct mt_live_block *ret_old)
{
	uint64_t hash = mt_u64_hash(addr);
	struct place place;
	struct page *page;
	int ret;

	if (!table->directory)
		return 0;
	page = page_of(table, hash);
	place = page_find(page, addr, hash, false);
	/* Looks first: what is not there makes no copy. */
	if (!place.bucket)
		return 0;
	if (table->directory->refs > 1 || page->refs > 1) {
		ret = page_to_change(table, hash, &page);
		if (ret)
			return ret;
		place = page_find(page, addr, hash, false);
	}
	read_block(page, &place, hash, true, ret_old);
	return 1;
}

void mt_live_table_prefetch(const struct mt_live_table *table, uint64_t addr)
{
	uint64_t hash = mt_u64_hash(addr);
	const struct page *page;

	if (!table->directory)
		return;
	page = page_of(table, hash);
	__builtin_prefetch(page);
	/* For a page of full size this is the bucket; a smaller one is warm anyway. */
	__builtin_prefetch((const char *)page + page_bytes(hash & (PAGE_BUCKETS - 1)));
}
