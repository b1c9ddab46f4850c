/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A page of the live table: a small hash table of buckets. Each bucket is a cache line with four
 * entries. An entry stands in the bucket that its hash picks or, when that is full, in the next
 * with room; a search goes on to the next bucket only while entries have been put past this one.
 *
 * Memory: a page of full size is taken from an arena, when there is one, else from the heap. An
 * arena gives its first pages from the heap too, and then puts them side by side into chunks that
 * are a huge page each: at random places of a large heap, finding where a page of 4 KiB is in
 * memory costs as much as reading it.
 *
 * Thread rule: an arena and all its pages are used by one thread at a time.
 */
#ifndef MT_TOOLS_LIVE_PAGE_H
#define MT_TOOLS_LIVE_PAGE_H

#include <assert.h>
#include <endian.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A page starts small, because most processes of a tree are, doubles up to MT_LIVE_PAGE_BUCKETS and
 * is then split. 128 buckets are 8 KiB: a copy takes less than a microsecond, and ten million
 * blocks need a directory of 32,768 entries.
 */
#define MT_LIVE_BUCKET_SLOTS  4u
#define MT_LIVE_FIRST_BUCKETS 2u
#define MT_LIVE_PAGE_BUCKETS  128u

/* A slot has room for so many bits of a size; those above them are in a second entry, a high one.
 */
#define MT_LIVE_SMALL_BITS 24u
#define MT_LIVE_SMALL_MASK ((1u << MT_LIVE_SMALL_BITS) - 1)

struct mt_live_bucket {
	uint64_t addrs[MT_LIVE_BUCKET_SLOTS];
	uint32_t owners[MT_LIVE_BUCKET_SLOTS];
	uint8_t sizes[MT_LIVE_BUCKET_SLOTS][3];
	uint8_t used;	/* bit i: slot i holds an entry */
	uint8_t high;	/* bit i: and it is a high one: owner and size hold what is above */
	uint8_t big;	/* bit i: there is a high entry of the same address */
	uint8_t passed; /* entries put past this bucket; once 255, it stays so */
};

static_assert(sizeof(struct mt_live_bucket) == 64, "a bucket is a cache line");

struct mt_live_arena;

struct mt_live_page {
	uint32_t refs;		     /* directories that hold it */
	uint32_t count;		     /* entries */
	uint32_t mask;		     /* buckets - 1 */
	uint32_t depth;		     /* top bits of the hash that all its blocks share */
	struct mt_live_arena *arena; /* that counts it, or NULL */
	bool in_chunk;		     /* of the arena; else it is from the heap */
	alignas(64) struct mt_live_bucket buckets[];
};

/* An entry as it moves between pages. */
struct mt_live_entry {
	uint64_t addr;
	uint32_t owner;
	uint32_t size; /* the small bits */
	bool high;
	bool big;
};

/* Where an entry stands. */
struct mt_live_place {
	struct mt_live_bucket *bucket; /* NULL: nowhere */
	unsigned slot;
	uint32_t past; /* buckets before it that it was put past */
};

/* NULL: no memory. All pages have to be gone before the arena is freed. NULL is nothing. */
struct mt_live_arena *mt_live_arena_new(void);
void mt_live_arena_free(struct mt_live_arena *arena);

/* An empty page, or a copy of one, held once. NULL: no memory. `arena` may be NULL. */
struct mt_live_page *mt_live_page_new(struct mt_live_arena *arena, uint32_t buckets,
				      uint32_t depth);
struct mt_live_page *mt_live_page_copy(struct mt_live_arena *arena,
				       const struct mt_live_page *page);

/* One holds it no more. */
void mt_live_page_put(struct mt_live_page *page);

/* Copies an entry to a page that has room for it and does not have it. */
void mt_live_page_move(struct mt_live_page *to, const struct mt_live_bucket *bucket, unsigned slot,
		       uint64_t hash);

static inline size_t mt_live_page_bytes(uint32_t buckets)
{
	return sizeof(struct mt_live_page) + buckets * sizeof(struct mt_live_bucket);
}

/* At most three quarters: few entries are put past their bucket, and there always is room. */
static inline bool mt_live_page_is_full(const struct mt_live_page *page)
{
	return page->count >= (page->mask + 1) * MT_LIVE_BUCKET_SLOTS / 4 * 3;
}

/* The slots that hold this address, as bits. */
static inline unsigned mt_live_bucket_matches(const struct mt_live_bucket *bucket, uint64_t addr,
					      bool high)
{
	/* Written out, so that all four are compared without a branch. */
	unsigned equal = (unsigned)(bucket->addrs[0] == addr) |
			 (unsigned)(bucket->addrs[1] == addr) << 1 |
			 (unsigned)(bucket->addrs[2] == addr) << 2 |
			 (unsigned)(bucket->addrs[3] == addr) << 3;

	return equal & (high ? bucket->used & bucket->high : bucket->used & ~bucket->high);
}

static inline uint32_t mt_live_bucket_size(const struct mt_live_bucket *bucket, unsigned slot)
{
	uint32_t bytes;

	/* One byte too many, which is in the bucket too. */
	memcpy(&bytes, bucket->sizes[slot], sizeof(bytes));
	return le32toh(bytes) & MT_LIVE_SMALL_MASK;
}

/* What a slot holds but for its bits. */
static inline void mt_live_bucket_write(struct mt_live_bucket *bucket, unsigned slot, uint64_t addr,
					uint32_t owner, uint32_t size)
{
	uint32_t bytes = htole32(size);

	bucket->addrs[slot] = addr;
	bucket->owners[slot] = owner;
	memcpy(bucket->sizes[slot], &bytes, sizeof(bucket->sizes[slot]));
}

static inline struct mt_live_place mt_live_page_find(struct mt_live_page *page, uint64_t addr,
						     uint64_t hash, bool high)
{
	struct mt_live_place place = { 0 };

	for (; place.past <= page->mask; place.past++) {
		struct mt_live_bucket *bucket =
			&page->buckets[((uint32_t)hash + place.past) & page->mask];
		unsigned equal = mt_live_bucket_matches(bucket, addr, high);

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

/* For a page that is known to have room and not to have the entry. */
static inline void mt_live_page_add(struct mt_live_page *page, const struct mt_live_entry *entry,
				    uint64_t hash)
{
	struct mt_live_bucket *bucket = &page->buckets[(uint32_t)hash & page->mask];
	unsigned slot;

	while (bucket->used == (1u << MT_LIVE_BUCKET_SLOTS) - 1) {
		bucket->passed += bucket->passed < UINT8_MAX;
		bucket = &page->buckets[((uint32_t)(bucket - page->buckets) + 1) & page->mask];
	}
	slot = (unsigned)__builtin_ctz(~(unsigned)bucket->used);
	mt_live_bucket_write(bucket, slot, entry->addr, entry->owner, entry->size);
	bucket->used |= (uint8_t)(1u << slot);
	/* Slots that are not used have neither. */
	bucket->high |= (uint8_t)((unsigned)entry->high << slot);
	bucket->big |= (uint8_t)((unsigned)entry->big << slot);
	page->count++;
}

static inline void mt_live_page_take(struct mt_live_page *page, const struct mt_live_place *place,
				     uint64_t hash)
{
	uint8_t others = (uint8_t) ~(1u << place->slot);

	place->bucket->used &= others;
	place->bucket->high &= others;
	place->bucket->big &= others;
	for (uint32_t i = 0; i < place->past; i++) {
		struct mt_live_bucket *bucket = &page->buckets[((uint32_t)hash + i) & page->mask];

		bucket->passed -= bucket->passed < UINT8_MAX;
	}
	page->count--;
}

#endif
