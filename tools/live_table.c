/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/live_table.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/u64_map.h"

/*
 * A page starts small, because most processes of a tree are, doubles up to PAGE_SLOTS and is then
 * split. 512 slots are 12 KiB: a copy takes a microsecond, and ten million blocks need a directory
 * of 32,768 entries.
 */
#define FIRST_SLOTS 16u
#define PAGE_SLOTS  512u

/* Only a file made for it, that also guessed the seed, comes here: pages then grow instead. */
#define MAX_DEPTH 24u

struct page {
	uint32_t refs;	/* directories that hold it */
	uint32_t count; /* blocks */
	uint32_t mask;	/* slots - 1 */
	uint32_t depth; /* top bits of the hash that all its blocks share */
	struct mt_live_block slots[];
};

struct mt_live_directory {
	uint32_t refs; /* tables that hold it */
	uint32_t depth;
	struct page *pages[]; /* 1 << depth; a page of less depth stands in a row of them */
};

static struct page *page_new(uint32_t slots, uint32_t depth)
{
	struct page *page = calloc(1, sizeof(*page) + slots * sizeof(page->slots[0]));

	if (!page)
		return NULL;
	page->refs = 1;
	page->mask = slots - 1;
	page->depth = depth;
	return page;
}

static void page_put(struct page *page)
{
	if (--page->refs == 0)
		free(page);
}

/* The slot that holds the address, or the empty one where it belongs: there always is one. */
static uint32_t page_slot(const struct page *page, uint64_t addr, uint64_t hash)
{
	uint32_t slot = (uint32_t)hash & page->mask;

	while (page->slots[slot].owner && page->slots[slot].addr != addr)
		slot = (slot + 1) & page->mask;
	return slot;
}

/* For a page that is known to have room and not to have the address. */
static void page_add(struct page *page, const struct mt_live_block *block)
{
	page->slots[page_slot(page, block->addr, mt_u64_hash(block->addr))] = *block;
	page->count++;
}

/*
 * Empties a slot and moves back the blocks behind it that a search would no longer find: those
 * whose own slot does not lie between the hole and where they stand.
 */
static void page_clear_slot(struct page *page, uint32_t hole)
{
	uint32_t slot = hole;

	for (;;) {
		uint32_t home;

		slot = (slot + 1) & page->mask;
		if (!page->slots[slot].owner)
			break;
		home = (uint32_t)mt_u64_hash(page->slots[slot].addr) & page->mask;
		if (((slot - home) & page->mask) >= ((slot - hole) & page->mask)) {
			page->slots[hole] = page->slots[slot];
			hole = slot;
		}
	}
	page->slots[hole].owner = 0;
	page->count--;
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

/* Calls for each page once: its row is as long as the directory is deeper than the page. */
static size_t next_page(const struct mt_live_directory *directory, size_t index)
{
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
		own->pages[0] = page_new(FIRST_SLOTS, 0);
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
	size_t bytes = sizeof(*shared) + (shared->mask + 1) * sizeof(shared->slots[0]);
	struct page *own;

	if (shared->refs == 1)
		return 0;
	own = malloc(bytes);
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
		if (old->slots[i].owner)
			page_add(larger, &old->slots[i]);
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
		uint64_t hash;

		if (!old->slots[i].owner)
			continue;
		hash = mt_u64_hash(old->slots[i].addr);
		page_add(half[hash >> (63 - old->depth) & 1], &old->slots[i]);
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

	if (page->mask + 1 < PAGE_SLOTS || page->depth == MAX_DEPTH) {
		if (page->mask >= UINT32_MAX / 2)
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

static bool page_is_full(const struct page *page)
{
	/* At most 13 of 16: searches stay short and there always is an empty slot. */
	return page->count >= (page->mask + 1) / 16 * 13;
}

int mt_live_table_insert(struct mt_live_table *table, const struct mt_live_block *block,
			 struct mt_live_block *ret_old)
{
	uint64_t hash = mt_u64_hash(block->addr);
	int ret = own_directory(table);
	struct page *page;
	uint32_t slot;
	size_t index;

	assert(block->owner);
	if (ret)
		return ret;
	for (;;) {
		index = directory_index(table->directory, hash);
		ret = own_page(table->directory, index);
		if (ret)
			return ret;
		page = table->directory->pages[index];
		slot = page_slot(page, block->addr, hash);
		if (page->slots[slot].owner) {
			*ret_old = page->slots[slot];
			page->slots[slot] = *block;
			return 1;
		}
		if (!page_is_full(page))
			break;
		ret = make_room(table, hash);
		if (ret)
			return ret;
	}
	page->slots[slot] = *block;
	page->count++;
	return 0;
}

const struct mt_live_block *mt_live_table_find(const struct mt_live_table *table, uint64_t addr)
{
	uint64_t hash = mt_u64_hash(addr);
	const struct page *page;
	uint32_t slot;

	if (!table->directory)
		return NULL;
	page = table->directory->pages[directory_index(table->directory, hash)];
	slot = page_slot(page, addr, hash);
	return page->slots[slot].owner ? &page->slots[slot] : NULL;
}

int mt_live_table_remove(struct mt_live_table *table, uint64_t addr, struct mt_live_block *ret_old)
{
	uint64_t hash = mt_u64_hash(addr);
	struct page *page;
	uint32_t slot;
	size_t index;
	int ret;

	if (!table->directory)
		return 0;
	index = directory_index(table->directory, hash);
	page = table->directory->pages[index];
	slot = page_slot(page, addr, hash);
	/* Looks first: what is not there makes no copy. */
	if (!page->slots[slot].owner)
		return 0;
	*ret_old = page->slots[slot];
	if (table->directory->refs > 1 || page->refs > 1) {
		ret = own_directory(table);
		if (!ret)
			ret = own_page(table->directory, index);
		if (ret)
			return ret;
		page = table->directory->pages[index];
	}
	page_clear_slot(page, slot);
	return 1;
}

void mt_live_table_prefetch(const struct mt_live_table *table, uint64_t addr)
{
	uint64_t hash = mt_u64_hash(addr);
	const struct page *page;
	uintptr_t slot;

	if (!table->directory)
		return;
	page = table->directory->pages[directory_index(table->directory, hash)];
	__builtin_prefetch(page);
	/* For a page of full size this is the slot; a smaller one is warm anyway. */
	slot = (uintptr_t)page + sizeof(*page) + (hash & (PAGE_SLOTS - 1)) * sizeof(*page->slots);
	__builtin_prefetch((const void *)slot);
}
