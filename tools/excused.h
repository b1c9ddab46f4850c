/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Findings of a replay that need not be contradictions: where records of a process were dropped,
 * the free of a block may stand there without the allocation, or an allocation over a block whose
 * free is missing. The recorder says how many records each process lost. So many findings of it,
 * and of the processes that inherited its blocks, are excused, and not one more: each missing
 * record explains one in each of them.
 *
 * Which of a process's findings they are nobody knows.
 *
 * Threads: one.
 */
#ifndef MT_TOOLS_EXCUSED_H
#define MT_TOOLS_EXCUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/replay.h"
#include "tools/run_info.h"

struct mt_excused {
	uint64_t by_kind[MT_FIND_KINDS];
	uint64_t frees;		/* of blocks that are not there */
	uint64_t allocs;	/* over blocks that are */
	struct mt_u64_map pids; /* of processes that have excuses */
};

/* Of a whole replay, before anything is taken from `info`. Returns 0 or -ENOMEM. */
int mt_excused_init(struct mt_excused *excused, const struct mt_replay *replay,
		    const struct mt_run_info *info);
void mt_excused_fini(struct mt_excused *excused);

/* Findings of that kind that are not excused. */
uint64_t mt_excused_rest(const struct mt_excused *excused, const struct mt_replay_totals *totals,
			 enum mt_finding_kind kind);

/* May this finding be one of them? */
bool mt_excused_may_be(const struct mt_excused *excused, const struct mt_finding *finding);

#endif
