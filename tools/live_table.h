/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The live blocks of one process, by address; copied lazily at fork.
 *
 * Extendible hashing: a directory of pages (live_page.h), picked by the hash's top bits, each page
 * a small hash table of buckets, picked by its low bits. A bucket is a cache line with four blocks:
 * nearly every search is one line and has no branch that depends on where in it the block stands.
 *
 *   table -> directory (shared by reference count)
 *              [0] -> page (shared by reference count) -> blocks
 *              [1] -> page
 *              ...
 *
 * mt_live_table_share() only takes a reference on the directory. The first change on either side
 * copies the directory (8 bytes for some 290 blocks) and from then on each page is copied by who
 * first changes it. A page that fills is split alone: no growth ever touches the whole table.
 *
 * A block carries who allocated it, so that nothing need be rewritten at fork to tell inherited
 * blocks from own ones. Pages do not depend on each other: shards by hash can each have a table.
 *
 * Thread rule: tables that share (parent and child) or have one arena are used by one thread at a
 * time.
 */
#ifndef MT_TOOLS_LIVE_TABLE_H
#define MT_TOOLS_LIVE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct mt_live_block {
	uint64_t addr;
	uint64_t size;
	uint32_t owner; /* who allocated it */
	uint32_t reserved;
};

struct mt_live_directory;
struct mt_live_arena;

/*
 * A zeroed table is empty and valid. The arena (live_page.h) is the caller's and may be NULL;
 * tables that share have the same one.
 */
struct mt_live_table {
	struct mt_live_directory *directory;
	struct mt_live_arena *arena;
};

/* Drops all blocks; what others share stays theirs. */
void mt_live_table_fini(struct mt_live_table *table);

/* Makes `table`, which must be empty, a lazy copy of `of`. */
void mt_live_table_share(struct mt_live_table *table, const struct mt_live_table *of);

/*
 * Puts a block in. Returns 0 when the address was free, 1 when a block stood there (it is replaced,
 * and is in ret_old), or -ENOMEM, after which the table can only be dropped.
 */
int mt_live_table_insert(struct mt_live_table *table, const struct mt_live_block *block,
			 struct mt_live_block *ret_old);

/* Takes a block out. Returns 1 with the block, 0 when there is none, or -ENOMEM. */
int mt_live_table_remove(struct mt_live_table *table, uint64_t addr, struct mt_live_block *ret_old);

/* Whether there is such a block, and the block. */
bool mt_live_table_find(const struct mt_live_table *table, uint64_t addr,
			struct mt_live_block *ret_block);

/*
 * Fetches what an insert, remove or toggle of this address will read; `table` may be NULL, then
 * nothing is. Changes nothing. Returns the address's hash, for toggle.
 */
uint64_t mt_live_table_prefetch(const struct mt_live_table *table, uint64_t addr);

/*
 * What nearly all inserts and removes are, and both in one, since which of them comes is as good as
 * random: a block `begins` at an address that is free, or the one that stands there ends (and then
 * is in *block, whose addr says where). True: done. False: it is not so, or not so simple, nothing
 * is changed: insert or remove has to do it.
 */
bool mt_live_table_toggle(struct mt_live_table *table, uint64_t hash, bool begins,
			  struct mt_live_block *block);

#endif
