/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/early.h"

#include <stdint.h>
#include <string.h>

#include "common/atomic.h"
#include "preload/real.h"

#define ARENA_BYTES (256 * 1024)
#define BLOCKS_MAX  2048

struct block {
	uint32_t start; /* in the arena */
	uint32_t size;
	uint32_t live;
};

static char arena[ARENA_BYTES] __attribute__((aligned(16)));
static uint32_t arena_used;
static struct block blocks[BLOCKS_MAX];
static uint32_t block_count;

/*
 * Relocation makes it right: before, it holds what the linker left there, nothing or an address
 * that counts from 0. Read as an atomic: the compiler must not know its value.
 */
static void *relocated_mark = arena;

/* What the look-up found, behind the functions that know the arena. */
static struct mt_real behind;

bool mt_early_is_relocated(void)
{
	return mt_load_relaxed(&relocated_mark) == (void *)arena;
}

void *mt_early_alloc(size_t size, size_t align)
{
	uint32_t used = mt_load_relaxed(&arena_used);
	uint32_t index, start;

	if (size > ARENA_BYTES || align > ARENA_BYTES)
		return NULL;
	if (align < 16)
		align = 16;
	do {
		uintptr_t from = ((uintptr_t)arena + used + align - 1) & ~(uintptr_t)(align - 1);

		start = (uint32_t)(from - (uintptr_t)arena);
		if (start > ARENA_BYTES || size > ARENA_BYTES - start)
			return NULL;
	} while (!mt_cas_acq_rel(&arena_used, &used, start + (uint32_t)size));
	index = mt_add_acq_rel(&block_count, 1);
	if (index >= BLOCKS_MAX)
		return NULL;
	blocks[index].start = start;
	blocks[index].size = (uint32_t)size;
	mt_store_release(&blocks[index].live, 1);
	return arena + start;
}

/* NULL for a block that is not ours. */
static struct block *find(const void *address)
{
	uint32_t count = mt_load_acquire(&block_count);
	uint32_t index;

	if ((uintptr_t)address - (uintptr_t)arena >= ARENA_BYTES)
		return NULL;
	for (index = 0; index < count && index < BLOCKS_MAX; index++) {
		if (arena + blocks[index].start == address)
			return &blocks[index];
	}
	return NULL;
}

void mt_early_free(void *address)
{
	struct block *block = find(address);

	if (block != NULL)
		mt_store_release(&block->live, 0);
}

/* Moves a block to `fresh`, which has room for `size`. */
static void *move(struct block *block, void *fresh, size_t size)
{
	if (fresh == NULL)
		return NULL;
	memcpy(fresh, arena + block->start, size < block->size ? size : block->size);
	mt_store_release(&block->live, 0);
	return fresh;
}

void *mt_early_realloc(void *address, size_t size)
{
	struct block *block = find(address);

	if (block == NULL)
		return address == NULL ? mt_early_alloc(size, 0) : NULL;
	return move(block, mt_early_alloc(size, 0), size);
}

static void known_free(void *address)
{
	if ((uintptr_t)address - (uintptr_t)arena < ARENA_BYTES)
		mt_early_free(address);
	else
		behind.free(address);
}

static void *known_realloc(void *address, size_t size)
{
	struct block *block = find(address);

	if (block == NULL)
		return behind.realloc(address, size);
	if (size == 0) {
		mt_early_free(address);
		return NULL;
	}
	return move(block, behind.malloc(size), size);
}

static void *known_reallocarray(void *address, size_t count, size_t each)
{
	size_t size;

	if (find(address) == NULL || __builtin_mul_overflow(count, each, &size))
		return behind.reallocarray(address, count, each);
	return known_realloc(address, size);
}

static void known_free_sized(void *address, size_t size)
{
	if (find(address) == NULL)
		behind.free_sized(address, size);
	else
		mt_early_free(address);
}

static void known_free_aligned_sized(void *address, size_t align, size_t size)
{
	if (find(address) == NULL)
		behind.free_aligned_sized(address, align, size);
	else
		mt_early_free(address);
}

void mt_early_guard_real(void)
{
	if (mt_load_acquire(&block_count) == 0)
		return;
	behind = mt_real;
	mt_real.free = known_free;
	mt_real.cfree = known_free;
	mt_real.realloc = known_realloc;
	mt_real.reallocarray = known_reallocarray;
	mt_real.free_sized = known_free_sized;
	mt_real.free_aligned_sized = known_free_aligned_sized;
}

void mt_early_each_live(void (*tell)(void *context, const void *block, size_t size), void *context)
{
	uint32_t count = mt_load_acquire(&block_count);
	uint32_t index;

	for (index = 0; index < count && index < BLOCKS_MAX; index++) {
		if (mt_load_acquire(&blocks[index].live) != 0)
			tell(context, arena + blocks[index].start, blocks[index].size);
	}
}
