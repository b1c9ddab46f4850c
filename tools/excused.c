/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/excused.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t dropped_by(const struct mt_meta_value *process)
{
	struct mt_meta_value losses, value;
	struct mt_mp_object key;
	struct mt_meta_iter it;
	uint64_t sum = 0;

	if (!mt_meta_get(process, MT_KEY_LOSSES, &losses))
		return 0;
	it = mt_meta_iter(&losses);
	while (mt_meta_next(&it, &key, &value))
		if (value.object.type == MT_MP_UINT)
			sum = add(sum, value.object.u);
	return sum;
}

/* The lives of a pid as they follow each other: of the recorder's list, and of the replay's. */
struct lives {
	const struct mt_run_info *info;
	struct mt_u64_map entry; /* pid -> its next entry in the recorder's list, from 1; 0: none */
	struct mt_u64_map newest; /* pid -> its life in the replay that was met last */
	uint64_t *dropped;	  /* of each life, with those of who it inherited from */
};

/* Returns 0 or -ENOMEM. */
static int meet(struct lives *lives, const struct mt_replay_process *process, uint32_t life)
{
	uint32_t pid = (uint32_t)process->pid;
	const uint32_t *entry = mt_u64_map_get(&lives->entry, pid), *parent;
	uint32_t next = 0;

	if (!entry)
		entry = mt_u64_map_get(&lives->info->pids, pid);
	if (entry && *entry) {
		const struct mt_run_process *told = &lives->info->processes[*entry - 1];

		lives->dropped[life] = dropped_by(&told->map);
		next = told->next;
	}
	parent = process->forked ? mt_u64_map_get(&lives->newest, (uint32_t)process->parent_pid)
				 : NULL;
	if (parent)
		lives->dropped[life] = add(lives->dropped[life], lives->dropped[*parent]);
	if (mt_u64_map_put(&lives->entry, pid, next) < 0 ||
	    mt_u64_map_put(&lives->newest, pid, life) < 0)
		return -ENOMEM;
	return 0;
}

static uint64_t take(uint64_t *left, uint64_t found)
{
	uint64_t taken = found < *left ? found : *left;

	*left -= taken;
	return taken;
}

static int excuse(struct mt_excused *excused, const struct mt_replay_process *process,
		  uint64_t dropped)
{
	const struct mt_replay_mismatches *found = &process->mismatches;
	uint64_t left = dropped;

	if (!dropped)
		return 0;
	excused->by_kind[MT_FIND_UNKNOWN_FREE] += take(&left, found->unknown_frees);
	excused->by_kind[MT_FIND_ALLOC_OVER_LIVE] += take(&left, found->allocs_over_live);
	excused->by_kind[MT_FIND_DOUBLE_FREE] += take(&left, found->double_frees);
	return mt_u64_map_put(&excused->pids, (uint32_t)process->pid, 1) < 0 ? -ENOMEM : 0;
}

int mt_excused_init(struct mt_excused *excused, const struct mt_replay *replay,
		    const struct mt_run_info *info)
{
	const struct mt_replay_process *const *list;
	size_t count = mt_replay_processes(replay, &list);
	struct lives lives = { .info = info };
	int ret = 0;

	*excused = (struct mt_excused){ 0 };
	if (!info->lost)
		return 0;
	lives.dropped = calloc(count + 1, sizeof(*lives.dropped));
	if (!lives.dropped)
		return -ENOMEM;
	for (size_t i = 0; i < count && !ret; i++) {
		ret = meet(&lives, list[i], (uint32_t)i);
		if (!ret)
			ret = excuse(excused, list[i], lives.dropped[i]);
	}
	excused->frees =
		excused->by_kind[MT_FIND_UNKNOWN_FREE] + excused->by_kind[MT_FIND_DOUBLE_FREE];
	excused->allocs = excused->by_kind[MT_FIND_ALLOC_OVER_LIVE];
	free(lives.dropped);
	mt_u64_map_fini(&lives.entry);
	mt_u64_map_fini(&lives.newest);
	return ret;
}

void mt_excused_fini(struct mt_excused *excused)
{
	mt_u64_map_fini(&excused->pids);
}

uint64_t mt_excused_rest(const struct mt_excused *excused, const struct mt_replay_totals *totals,
			 enum mt_finding_kind kind)
{
	return totals->findings[kind] - excused->by_kind[kind];
}

bool mt_excused_may_be(const struct mt_excused *excused, const struct mt_finding *finding)
{
	return (finding->kind == MT_FIND_UNKNOWN_FREE || finding->kind == MT_FIND_DOUBLE_FREE ||
		finding->kind == MT_FIND_ALLOC_OVER_LIVE) &&
	       mt_u64_map_get(&excused->pids, (uint32_t)finding->event->pid);
}
