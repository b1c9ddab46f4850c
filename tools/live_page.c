/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/live_page.h"

#include <stdlib.h>
#include <sys/mman.h>

/* With fewer pages, in all some 20,000 blocks, a huge page would be mostly empty. */
#define HEAP_PAGES 64u

#define CHUNK_BYTES (2u << 20)
#define FULL_BYTES \
	(sizeof(struct mt_live_page) + MT_LIVE_PAGE_BUCKETS * sizeof(struct mt_live_bucket))

/* A place for a page that is not used. */
struct hole {
	struct hole *next;
};

/* It begins at a multiple of its size, so that the chunk of a page is told by its address. */
struct chunk {
	struct chunk *next, *prev; /* in the list of those with room */
	struct hole *holes;
	uint32_t used;	/* pages */
	uint32_t begun; /* places from the first that were ever used */
};

#define CHUNK_PAGES ((uint32_t)((CHUNK_BYTES - sizeof(struct chunk) - 63) / FULL_BYTES))

struct mt_live_arena {
	struct chunk *with_room;
	size_t heap_pages; /* under way */
};

struct mt_live_arena *mt_live_arena_new(void)
{
	return calloc(1, sizeof(struct mt_live_arena));
}

void mt_live_arena_free(struct mt_live_arena *arena)
{
	if (!arena)
		return;
	assert(!arena->heap_pages);
	/* At most one is kept empty. */
	assert(!arena->with_room || (!arena->with_room->used && !arena->with_room->next));
	free(arena->with_room);
	free(arena);
}

static struct chunk *chunk_of(void *place)
{
	return (struct chunk *)((uintptr_t)place & ~(uintptr_t)(CHUNK_BYTES - 1));
}

static void *chunk_place(struct chunk *chunk, uint32_t number)
{
	size_t first = (sizeof(*chunk) + 63) & ~(size_t)63;

	return (char *)chunk + first + number * FULL_BYTES;
}

static bool chunk_has_room(const struct chunk *chunk)
{
	return chunk->used < CHUNK_PAGES;
}

static void list_add(struct mt_live_arena *arena, struct chunk *chunk)
{
	chunk->prev = NULL;
	chunk->next = arena->with_room;
	if (chunk->next)
		chunk->next->prev = chunk;
	arena->with_room = chunk;
}

static void list_remove(struct mt_live_arena *arena, struct chunk *chunk)
{
	if (chunk->next)
		chunk->next->prev = chunk->prev;
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		arena->with_room = chunk->next;
}

static bool add_chunk(struct mt_live_arena *arena)
{
	struct chunk *chunk = aligned_alloc(CHUNK_BYTES, CHUNK_BYTES);

	if (!chunk)
		return false;
	/* Where there are none it is as good, only slower. */
	(void)madvise(chunk, CHUNK_BYTES, MADV_HUGEPAGE);
	*chunk = (struct chunk){ 0 };
	list_add(arena, chunk);
	return true;
}

/* A place for a page of full size in a chunk. */
static void *arena_take(struct mt_live_arena *arena)
{
	struct chunk *chunk;
	void *place;

	if (!arena->with_room && !add_chunk(arena))
		return NULL;
	chunk = arena->with_room;
	place = chunk->holes;
	if (place)
		chunk->holes = chunk->holes->next;
	else
		place = chunk_place(chunk, chunk->begun++);
	chunk->used++;
	if (!chunk_has_room(chunk))
		list_remove(arena, chunk);
	return place;
}

static void arena_give_back(struct mt_live_arena *arena, void *place)
{
	struct chunk *chunk = chunk_of(place);
	struct hole *hole = place;

	if (!chunk_has_room(chunk))
		list_add(arena, chunk);
	hole->next = chunk->holes;
	chunk->holes = hole;
	/* One is kept, so that a heap that goes up and down by a page does not fault it in anew. */
	if (--chunk->used == 0 && (chunk->next || chunk->prev)) {
		list_remove(arena, chunk);
		free(chunk);
	}
}

/* Memory for a page; all of it is undefined but where it is from. */
static struct mt_live_page *page_alloc(struct mt_live_arena *arena, uint32_t buckets)
{
	struct mt_live_page *page;
	bool from_heap;

	if (buckets != MT_LIVE_PAGE_BUCKETS)
		arena = NULL;
	from_heap = !arena || (!arena->with_room && arena->heap_pages < HEAP_PAGES);
	page = from_heap ? aligned_alloc(64, mt_live_page_bytes(buckets)) : arena_take(arena);
	if (!page)
		return NULL;
	page->arena = arena;
	page->in_chunk = !from_heap;
	if (arena && from_heap)
		arena->heap_pages++;
	return page;
}

struct mt_live_page *mt_live_page_new(struct mt_live_arena *arena, uint32_t buckets, uint32_t depth)
{
	struct mt_live_page *page = page_alloc(arena, buckets);

	if (!page)
		return NULL;
	page->refs = 1;
	page->count = 0;
	page->mask = buckets - 1;
	page->depth = depth;
	memset(page->buckets, 0, buckets * sizeof(page->buckets[0]));
	return page;
}

struct mt_live_page *mt_live_page_copy(struct mt_live_arena *arena, const struct mt_live_page *page)
{
	struct mt_live_page *copy = page_alloc(arena, page->mask + 1);

	if (!copy)
		return NULL;
	copy->refs = 1;
	copy->count = page->count;
	copy->mask = page->mask;
	copy->depth = page->depth;
	memcpy(copy->buckets, page->buckets, (page->mask + 1) * sizeof(page->buckets[0]));
	return copy;
}

void mt_live_page_put(struct mt_live_page *page)
{
	if (--page->refs)
		return;
	if (page->in_chunk) {
		arena_give_back(page->arena, page);
		return;
	}
	if (page->arena)
		page->arena->heap_pages--;
	free(page);
}

void mt_live_page_move(struct mt_live_page *to, const struct mt_live_bucket *bucket, unsigned slot,
		       uint64_t hash)
{
	const struct mt_live_entry entry = { .addr = bucket->addrs[slot],
					     .owner = bucket->owners[slot],
					     .size = mt_live_bucket_size(bucket, slot),
					     .high = bucket->high >> slot & 1,
					     .big = bucket->big >> slot & 1 };

	mt_live_page_add(to, &entry, hash);
}
