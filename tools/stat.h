/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What `memtrack stat` has gathered, for its two ways of printing it. Private to the command.
 */
#ifndef MT_TOOLS_STAT_H
#define MT_TOOLS_STAT_H

#include <stdbool.h>

#include "tools/excused.h"
#include "tools/input.h"
#include "tools/replay.h"
#include "tools/run_info.h"

struct mt_stat {
	struct mt_input input;
	struct mt_replay *replay;
	struct mt_run_info info;
	struct mt_excused excused;
	bool all; /* every process in the table */
	unsigned threads;
};

/* What is left at the end: of the processes' last images, own blocks and inherited ones. */
struct mt_live_sums mt_stat_left(const struct mt_stat *stat);

/* Both return an exit status. */
int mt_stat_print_json(struct mt_stat *stat);
int mt_stat_print_text(struct mt_stat *stat);

static inline uint64_t mt_stat_allocations(const struct mt_replay_counts *counts)
{
	return counts->kinds[MT_EVENT_MALLOC] + counts->kinds[MT_EVENT_CALLOC] +
	       counts->kinds[MT_EVENT_ALIGNED_ALLOC] + counts->kinds[MT_EVENT_REALLOC];
}

/* A realloc of a block ends it as a free does. */
static inline uint64_t mt_stat_frees(const struct mt_replay_counts *counts)
{
	return counts->kinds[MT_EVENT_FREE] + counts->reallocs_of_block;
}

#endif
