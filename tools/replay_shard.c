/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/live_page.h"
#include "tools/replay_internal.h"

/*
 * How far ahead the table's pages are fetched: some misses of memory, of which each op has about
 * one in a heap larger than the caches.
 */
#define PREFETCH_OPS 16u

/* So that shards do not share cache lines, and the shard's bits come first. */
static struct mt_recent_free *recent_of(const struct mt_replay_shard *shard, uint64_t addr,
					uint32_t owner)
{
	const unsigned low_bits = MT_RECENT_BITS - MT_SHARD_BITS;
	uint64_t mixed = mt_replay_mix(addr);
	uint64_t low = (mixed >> 24 ^ owner) & ((1u << low_bits) - 1);

	return &shard->recent[mixed >> (64 - MT_SHARD_BITS) << low_bits | low];
}

static int tables_room(struct mt_replay_shard *shard, uint32_t life)
{
	size_t count = shard->tables_count ? shard->tables_count : 16;
	struct mt_live_table *tables;

	while (count <= life)
		count *= 2;
	tables = reallocarray(shard->tables, count, sizeof(*tables));
	if (!tables)
		return -ENOMEM;
	memset(tables + shard->tables_count, 0, (count - shard->tables_count) * sizeof(*tables));
	/* Without an arena, it is as good, only slower. */
	if (!shard->arena)
		shard->arena = mt_live_arena_new();
	for (size_t i = shard->tables_count; i < count; i++)
		tables[i].arena = shard->arena;
	shard->tables = tables;
	shard->tables_count = count;
	return 0;
}

void mt_replay_shard_fini(struct mt_replay_shard *shard)
{
	for (size_t i = 0; i < shard->tables_count; i++)
		mt_live_table_fini(&shard->tables[i]);
	free(shard->tables);
	mt_live_arena_free(shard->arena);
}

/* The table of a process, or NULL: out of memory. */
static inline struct mt_live_table *table_of(struct mt_replay_shard *shard, uint32_t life)
{
	if (life >= shard->tables_count && tables_room(shard, life))
		return NULL;
	return &shard->tables[life];
}

static int run_turn(struct mt_replay_shard *shard, const struct mt_replay_turn *turn)
{
	struct mt_live_table *table;

	if (turn->dropped && turn->dropped->index < shard->tables_count)
		mt_live_table_fini(&shard->tables[turn->dropped->index]);
	if (!turn->inherits || turn->parent->index >= shard->tables_count)
		return 0;
	table = table_of(shard, turn->life->index);
	if (!table)
		return -ENOMEM;
	mt_live_table_share(table, &shard->tables[turn->parent->index]);
	return 0;
}

/* The op, whose result is not yet in it, frees. */
static inline void note_free(struct mt_recent_free *recent, const struct mt_replay_step *step,
			     const struct mt_replay_op *op)
{
	*recent = (struct mt_recent_free){ .addr = op->addr,
					   .frame = step->frame,
					   .index = (uint32_t)(step->first_index + op->event),
					   .owner = op->owner };
}

static int run_end(struct mt_replay_shard *shard, const struct mt_replay_step *step,
		   struct mt_live_table *table, struct mt_replay_op *op)
{
	struct mt_recent_free *recent = recent_of(shard, op->addr, op->owner);
	const struct mt_replay_op asked = *op;
	struct mt_live_block old;
	int ret = mt_live_table_remove(table, op->addr, &old);

	if (ret < 0)
		return ret;
	if (ret) {
		op->result = MT_OP_BLOCK;
		op->size = old.size;
		op->owner = old.owner;
	} else if (recent->owner == op->owner && recent->addr == op->addr) {
		/*
		 * Had the address been allocated since that free, it would be live now, or a later
		 * free would stand here.
		 */
		op->result = MT_OP_FREED_BEFORE;
		op->size = recent->frame;
		op->owner = recent->index;
	}
	note_free(recent, step, &asked);
	return 0;
}

static int run_begin(struct mt_live_table *table, struct mt_replay_op *op)
{
	struct mt_live_block block = { op->addr, op->size, op->owner, 0 };
	struct mt_live_block old;
	int ret = mt_live_table_insert(table, &block, &old);

	if (ret < 0)
		return ret;
	if (ret) {
		op->result = MT_OP_BLOCK;
		op->size = old.size;
		op->owner = old.owner;
	}
	return 0;
}

/* An op that is not simply that a block begins where none is, or one that is there ends. */
static int run_odd(struct mt_replay_shard *shard, const struct mt_replay_step *step,
		   struct mt_replay_op *op)
{
	struct mt_live_table *table;

	if (op->kind == MT_OP_TURN)
		return run_turn(shard, &step->turns[op->event]);
	table = table_of(shard, op->life);
	if (!table)
		return -ENOMEM;
	return op->kind == MT_OP_END ? run_end(shard, step, table, op) : run_begin(table, op);
}

/* Any other op, without a branch on which of both it is. False: nothing was done. */
static inline bool run_plain(struct mt_replay_shard *shard, const struct mt_replay_step *step,
			     struct mt_replay_op *op, uint64_t hash)
{
	struct mt_live_block block = { op->addr, op->size, op->owner, 0 };
	struct mt_recent_free none, *recent;
	bool begins = op->kind == MT_OP_BEGIN;

	if (op->kind == MT_OP_TURN || op->life >= shard->tables_count ||
	    !mt_live_table_toggle(&shard->tables[op->life], hash, begins, &block))
		return false;
	recent = recent_of(shard, op->addr, op->owner);
	recent = begins ? &none : recent;
	note_free(recent, step, op);
	static_assert(MT_OP_NOTHING == 0 && MT_OP_BLOCK == 1, "the result is told by a sum");
	op->result = !begins;
	op->size = block.size;
	op->owner = block.owner;
	return true;
}

/* Fetches the table's parts that the op will use. Returns the hash of its address. */
static inline uint64_t prefetch(const struct mt_replay_shard *shard, const struct mt_replay_op *op)
{
	return mt_live_table_prefetch(
		op->life < shard->tables_count ? &shard->tables[op->life] : NULL, op->addr);
}

int mt_replay_shard_run(struct mt_replay *replay, unsigned shard_index, struct mt_replay_step *step)
{
	struct mt_replay_shard *shard = &replay->shards[shard_index];
	struct mt_op_list *list = &step->lists[shard_index];
	uint64_t hashes[PREFETCH_OPS];
	int ret = 0;

	for (size_t i = 0; i < list->count && i < PREFETCH_OPS; i++)
		hashes[i] = prefetch(shard, &list->ops[i]);
	for (size_t i = 0; i < list->count && !ret; i++) {
		struct mt_replay_op *op = &list->ops[i];
		uint64_t hash = hashes[i % PREFETCH_OPS];

		if (i + PREFETCH_OPS < list->count)
			hashes[i % PREFETCH_OPS] = prefetch(shard, op + PREFETCH_OPS);
		if (!run_plain(shard, step, op, hash))
			ret = run_odd(shard, step, op);
	}
	return ret;
}
