/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/live_page.h"
#include "tools/live_table.h"
#include "tools/u64_map.h"

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int put(struct mt_live_table *table, uint64_t addr, uint64_t size, uint32_t owner)
{
	struct mt_live_block block = { addr, size, owner, 0 };
	struct mt_live_block old;

	return mt_live_table_insert(table, &block, &old);
}

Test(live_table, insert_find_remove)
{
	struct mt_live_table table = { 0 };
	struct mt_live_block old;

	cr_assert_not(mt_live_table_find(&table, 16, &old));
	cr_assert_eq(mt_live_table_remove(&table, 16, &old), 0);
	cr_assert_eq(put(&table, 16, 100, 1), 0);
	cr_assert_eq(put(&table, 0, 7, 1), 0, "the address 0 is an address as others");
	cr_assert(mt_live_table_find(&table, 16, &old));
	cr_assert_eq(old.size, 100);
	cr_assert(mt_live_table_find(&table, 0, &old));
	cr_assert_eq(old.size, 7);
	cr_assert_eq(mt_live_table_remove(&table, 16, &old), 1);
	cr_assert_eq(old.size, 100);
	cr_assert_not(mt_live_table_find(&table, 16, &old));
	mt_live_table_fini(&table);
}

Test(live_table, insert_over_gives_the_old_block)
{
	struct mt_live_table table = { 0 };
	struct mt_live_block block = { 64, 20, 2, 0 };
	struct mt_live_block old;

	put(&table, 64, 10, 1);
	cr_assert_eq(mt_live_table_insert(&table, &block, &old), 1);
	cr_assert_eq(old.size, 10);
	cr_assert_eq(old.owner, 1);
	cr_assert(mt_live_table_find(&table, 64, &old));
	cr_assert_eq(old.owner, 2);
	mt_live_table_fini(&table);
}

Test(live_table, changes_after_share_stay_apart)
{
	struct mt_live_table parent = { 0 };
	struct mt_live_table child = { 0 };
	struct mt_live_block old;
	const uint64_t n = 20000;

	for (uint64_t i = 0; i < n; i++)
		put(&parent, i * 16, i, 1);
	mt_live_table_share(&child, &parent);
	for (uint64_t i = 0; i < n; i += 2)
		cr_assert_eq(mt_live_table_remove(&parent, i * 16, &old), 1);
	for (uint64_t i = 1; i < n; i += 2)
		cr_assert_eq(put(&child, i * 16, 5, 2), 1);
	for (uint64_t i = 0; i < n; i++) {
		bool mine = mt_live_table_find(&parent, i * 16, &old);

		cr_assert_eq(mine, i % 2 == 1);
		cr_assert(!mine || (old.owner == 1 && old.size == i));
		cr_assert(mt_live_table_find(&child, i * 16, &old));
		cr_assert_eq(old.owner, i % 2 ? 2 : 1);
	}
	/* Either may end first. */
	mt_live_table_fini(&parent);
	cr_assert(mt_live_table_find(&child, 0, &old));
	cr_assert_eq(old.size, 0);
	mt_live_table_fini(&child);
}

/* Random operations on a growing family of tables, each held against a plain array. */
#define TABLES 6

struct family {
	struct mt_live_table tables[TABLES];
	uint64_t *model[TABLES]; /* by number of the address: size + 1; 0: not live */
	unsigned addresses;
	uint64_t toggled;
};

/* Puts the block in or takes it out, by toggle where it can; what was there is what should be. */
static void change(struct family *family, unsigned t, unsigned a, bool begins, uint64_t size,
		   bool toggle)
{
	struct mt_live_block block = { a * 16ull, size, t + 1, 0 }, old;
	struct mt_live_table *table = &family->tables[t];
	uint64_t *model = &family->model[t][a];
	uint64_t hash = mt_live_table_prefetch(table, block.addr);

	if (toggle && mt_live_table_toggle(table, hash, begins, &block)) {
		cr_assert_eq(begins, !*model);
		cr_assert_eq(block.size, begins ? size : *model - 1);
		cr_assert_eq(block.addr, a * 16ull);
		family->toggled++;
	} else {
		int ret = begins ? mt_live_table_insert(table, &block, &old)
				 : mt_live_table_remove(table, block.addr, &old);

		cr_assert_eq(ret, *model != 0);
		cr_assert(!*model || old.size == *model - 1);
	}
	*model = begins ? size + 1 : 0;
}

static void run_family(struct family *family, int steps, bool toggle)
{
	uint64_t state = 88172645463325252ull;

	for (int step = 0; step < steps; step++) {
		uint64_t r = random_next(&state);
		unsigned t = (unsigned)(r % TABLES);
		unsigned a = (unsigned)(r >> 8) % family->addresses;
		/* Of all widths, most of them small. */
		uint64_t size = r >> 2 & 3 ? r >> 48 : r >> 1 >> (r >> 4 & 63);

		if (step % (steps / 80) == steps / 80 - 1) {
			unsigned to = (t + 1) % TABLES;

			mt_live_table_fini(&family->tables[to]);
			mt_live_table_share(&family->tables[to], &family->tables[t]);
			memcpy(family->model[to], family->model[t],
			       family->addresses * sizeof(uint64_t));
		} else {
			change(family, t, a, r >> 32 & 1, size, toggle);
		}
	}
}

static void expect_model(unsigned addresses, int steps, bool toggle, struct mt_live_arena *arena)
{
	struct family family = { .addresses = addresses };

	for (unsigned t = 0; t < TABLES; t++) {
		family.model[t] = calloc(addresses, sizeof(uint64_t));
		family.tables[t].arena = arena;
		cr_assert(family.model[t]);
	}
	run_family(&family, steps, toggle);
	for (unsigned t = 0; t < TABLES; t++) {
		for (unsigned a = 0; a < addresses; a++) {
			struct mt_live_block block;
			bool is_live = mt_live_table_find(&family.tables[t], a * 16ull, &block);

			cr_assert_eq(is_live ? block.size + 1 : 0, family.model[t][a]);
		}
		mt_live_table_fini(&family.tables[t]);
		free(family.model[t]);
	}
	/* Otherwise nothing of it was tried. */
	cr_assert(!toggle || family.toggled > (uint64_t)steps / 4);
}

Test(live_table, random_operations_match_a_model)
{
	expect_model(3000, 400000, false, NULL);
}

Test(live_table, toggle_does_what_insert_and_remove_do)
{
	expect_model(3000, 400000, true, NULL);
}

/* Enough blocks for many chunks of pages. When all are gone, so is their memory: the arena tells.
 */
Test(live_table, pages_of_an_arena_match_a_model)
{
	struct mt_live_arena *arena = mt_live_arena_new();

	cr_assert(arena);
	expect_model(60000, 2000000, true, arena);
	expect_model(3000, 100000, true, arena);
	mt_live_arena_free(arena);
}

Test(live_table, toggle_leaves_what_is_not_simple)
{
	struct mt_live_table table = { 0 }, child = { 0 };
	struct mt_live_block block = { 64, 10, 1, 0 };
	uint64_t hash = mt_live_table_prefetch(&table, 64);

	cr_expect_not(mt_live_table_toggle(&table, hash, true, &block), "there is no page yet");
	put(&table, 64, 10, 1);
	cr_expect_not(mt_live_table_toggle(&table, hash, true, &block), "it is live");
	mt_live_table_share(&child, &table);
	cr_expect_not(mt_live_table_toggle(&table, hash, false, &block), "the page is shared");
	mt_live_table_fini(&child);
	cr_expect(mt_live_table_toggle(&table, hash, false, &block));
	cr_expect_not(mt_live_table_toggle(&table, hash, false, &block), "it is not live");
	block.size = 1ull << 40;
	cr_expect_not(mt_live_table_toggle(&table, hash, true, &block), "it is big");
	put(&table, 64, 1ull << 40, 1);
	cr_expect_not(mt_live_table_toggle(&table, hash, false, &block), "it is big");
	mt_live_table_fini(&table);
}

Test(u64_map, puts_and_gets_every_key)
{
	struct mt_u64_map map = { 0 };

	cr_assert_null(mt_u64_map_get(&map, 0));
	for (uint64_t i = 0; i < 10000; i++)
		cr_assert_eq(mt_u64_map_put(&map, i << 32, (uint32_t)i), 1);
	cr_assert_eq(mt_u64_map_put(&map, 5ull << 32, 99), 0);
	for (uint64_t i = 0; i < 10000; i++)
		cr_assert_eq(*mt_u64_map_get(&map, i << 32), i == 5 ? 99 : i);
	cr_assert_null(mt_u64_map_get(&map, 1));
	mt_u64_map_fini(&map);
	cr_assert_null(mt_u64_map_get(&map, 1ull << 32));
}
