/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>

#include "sidecar/liveness.h"

static struct mt_liveness_budget budget;
static struct mt_liveness parent, child;

static void open_parent(void)
{
	budget = (struct mt_liveness_budget){ .max_bytes = UINT64_C(1) << 30 };
	mt_liveness_init(&parent, &budget);
}

static void close_parent(void)
{
	mt_liveness_fini(&parent);
	cr_assert_eq(budget.bytes, 0, "%llu bytes are left", (unsigned long long)budget.bytes);
}

TestSuite(liveness, .init = open_parent, .fini = close_parent);

Test(liveness, neighbours_do_not_disturb_each_other)
{
	for (uint64_t addr = 0x7f0000000000; addr < 0x7f0000000000 + 4096; addr += 8)
		cr_assert_eq(mt_liveness_set(&parent, addr), MT_LIVE_FLIPPED);
	cr_assert_eq(mt_liveness_clear(&parent, 0x7f0000000008), MT_LIVE_FLIPPED);
	cr_assert_eq(mt_liveness_clear(&parent, 0x7f0000000008), MT_LIVE_CONFLICT);
	cr_assert_eq(mt_liveness_set(&parent, 0x7f0000000000), MT_LIVE_CONFLICT);
	cr_assert_eq(mt_liveness_set(&parent, 0x7f0000000010), MT_LIVE_CONFLICT);
}

Test(liveness, many_regions)
{
	for (uint64_t i = 0; i < 3000; i++)
		cr_assert_eq(mt_liveness_set(&parent, i << 21), MT_LIVE_FLIPPED);
	for (uint64_t i = 0; i < 3000; i++)
		cr_assert_eq(mt_liveness_clear(&parent, i << 21), MT_LIVE_FLIPPED);
}

Test(liveness, quick_way_agrees_with_the_other)
{
	cr_assert(mt_liveness_flip(&parent, 0x1000, false));
	cr_assert_not(mt_liveness_flip(&parent, 0x1000, false));
	cr_assert_eq(mt_liveness_set(&parent, 0x1000), MT_LIVE_CONFLICT);
	cr_assert(mt_liveness_flip(&parent, 0x1000, true));
	cr_assert_not(mt_liveness_flip(&parent, 0x1000, true));
	cr_assert_eq(mt_liveness_clear(&parent, 0x1000), MT_LIVE_CONFLICT);
}

Test(liveness, fork_shares_until_somebody_writes)
{
	uint64_t before;

	for (uint64_t i = 0; i < 100; i++)
		mt_liveness_set(&parent, i << 21);
	before = budget.bytes;
	mt_liveness_fork(&parent, &child);
	cr_assert_eq(budget.bytes, before);
	cr_assert_eq(mt_liveness_clear(&parent, 1 << 21), MT_LIVE_FLIPPED);
	cr_assert_eq(mt_liveness_clear(&child, 2 << 21), MT_LIVE_FLIPPED);
	cr_assert_eq(mt_liveness_clear(&child, 1 << 21), MT_LIVE_FLIPPED);
	cr_assert_eq(mt_liveness_clear(&parent, 2 << 21), MT_LIVE_FLIPPED);
	cr_assert_lt(budget.bytes, before + 16 * sizeof(struct mt_region));
	mt_liveness_fini(&child);
}

Test(liveness, inherited_blocks_end_silently_and_once)
{
	mt_liveness_set(&parent, 0x1000);
	mt_liveness_set(&parent, 0x2000);
	mt_liveness_fork(&parent, &child);
	cr_assert_eq(mt_liveness_set(&child, 0x1000), MT_LIVE_INHERITED);
	cr_assert_eq(mt_liveness_set(&child, 0x1000), MT_LIVE_CONFLICT);
	/* Freed and taken anew it is the child's own. */
	cr_assert_eq(mt_liveness_clear(&child, 0x2000), MT_LIVE_FLIPPED);
	cr_assert_eq(mt_liveness_set(&child, 0x2000), MT_LIVE_FLIPPED);
	cr_assert_eq(mt_liveness_set(&child, 0x2000), MT_LIVE_CONFLICT);
	cr_assert_eq(mt_liveness_set(&parent, 0x1000), MT_LIVE_CONFLICT);
	mt_liveness_fini(&child);
}

Test(liveness, at_the_limit_regions_go_unchecked_and_memory_stays)
{
	unsigned unchecked = 0;

	budget.max_bytes = 20 * sizeof(struct mt_region);
	for (uint64_t i = 0; i < 200; i++) {
		enum mt_liveness_result result = mt_liveness_set(&parent, i << 21);

		cr_assert_neq(result, MT_LIVE_CONFLICT);
		unchecked += result == MT_LIVE_UNCHECKED;
		cr_assert_lt(budget.bytes, 40 * sizeof(struct mt_region));
	}
	/* Regions that were not used lately made room. */
	cr_assert_lt(unchecked, 190);
	cr_assert_eq(mt_liveness_clear(&parent, 0), MT_LIVE_UNCHECKED);
}
