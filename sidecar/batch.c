// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/batch.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "sidecar/patience.h"

/*
 * The arena is a list of blocks, newest first. The first one stays when the batch is emptied, so
 * that a steady flow of mappings does not allocate.
 */
struct mt_arena_block {
	struct mt_arena_block *older;
	size_t used, size;
	char bytes[];
};

#define ARENA_BLOCK_BYTES (64u * 1024u)

/* Fresh anonymous pages: what is not filled is never touched. */
struct mt_batch *mt_batch_new(void)
{
	struct mt_batch *batch = mmap(NULL, sizeof(*batch), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return batch == MAP_FAILED ? NULL : batch;
}

static void arena_drop(struct mt_batch *batch, struct mt_arena_block *keep)
{
	while (batch->arena && batch->arena != keep) {
		struct mt_arena_block *older = batch->arena->older;

		free(batch->arena);
		batch->arena = older;
	}
}

void mt_batch_free(struct mt_batch *batch)
{
	if (!batch)
		return;
	arena_drop(batch, NULL);
	munmap(batch, sizeof(*batch));
}

void mt_batch_reset(struct mt_batch *batch)
{
	struct mt_arena_block *first = batch->arena;

	while (first && first->older)
		first = first->older;
	arena_drop(batch, first);
	if (first)
		first->used = 0;
	batch->count = 0;
}

void *mt_batch_alloc(struct mt_batch *batch, size_t bytes)
{
	struct mt_arena_block *block = batch->arena;
	void *memory;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + 7) & ~(size_t)7;
	if (!block || block->size - block->used < bytes) {
		size_t size = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;

		block = mt_patient_malloc(sizeof(*block) + size);
		if (!block)
			return NULL;
		block->older = batch->arena;
		block->used = 0;
		block->size = size;
		batch->arena = block;
	}
	memory = block->bytes + block->used;
	block->used += bytes;
	return memory;
}
