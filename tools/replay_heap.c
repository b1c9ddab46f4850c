/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/replay_internal.h"

#include <errno.h>
#include <stdlib.h>

enum stack_state {
	STACK_DEFINED,
	STACK_USED,	 /* in this frame, not defined yet */
	STACK_UNDEFINED, /* was said */
};

static struct mt_recent_free *recent_of(struct mt_replay *replay, uint64_t addr, uint32_t owner)
{
	uint64_t mixed = (addr ^ (uint64_t)owner << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return &replay->recent[mixed >> 32 & (MT_RECENT_FREES - 1)];
}

static void note_free(struct mt_replay *replay, uint64_t addr, uint32_t owner)
{
	struct mt_recent_free *recent = recent_of(replay, addr, owner);

	recent->addr = addr;
	recent->owner = owner;
	recent->frame = replay->frame;
	recent->index = (uint32_t)replay->index;
}

static void find_bad_free(struct mt_replay *replay, const struct mt_replay_process *process,
			  const struct mt_event *event, uint64_t addr)
{
	const struct mt_recent_free *recent = recent_of(replay, addr, process->owner);
	struct mt_finding finding = { .addr = addr };

	/*
	 * Had the address been allocated since that free, it would be live now, or a later free
	 * would stand here.
	 */
	if (recent->owner == process->owner && recent->addr == addr) {
		finding.has_before = true;
		finding.before_frame = recent->frame;
		finding.before_index = recent->index;
		mt_replay_find(replay, MT_FIND_DOUBLE_FREE, event, &finding);
	} else {
		mt_replay_find(replay, MT_FIND_UNKNOWN_FREE, event, &finding);
	}
}

/* Takes a block that is no longer in the table out of the sums. */
static void forget_block(struct mt_replay *replay, struct mt_replay_process *process,
			 const struct mt_live_block *block)
{
	struct mt_live_sums *sums = &process->sums;

	sums->blocks--;
	sums->bytes -= block->size;
	if (block->owner == process->owner) {
		replay->totals.live_blocks--;
		replay->totals.live_bytes -= block->size;
	} else {
		sums->inherited_blocks--;
		sums->inherited_bytes -= block->size;
	}
}

static int end_block(struct mt_replay *replay, struct mt_replay_process *process,
		     const struct mt_event *event, uint64_t addr)
{
	struct mt_live_block old;
	int ret = mt_live_table_remove(&process->live, addr, &old);

	if (ret < 0)
		return ret;
	if (ret)
		forget_block(replay, process, &old);
	else
		find_bad_free(replay, process, event, addr);
	note_free(replay, addr, process->owner);
	return 0;
}

static void raise_peaks(struct mt_replay *replay, struct mt_replay_process *process,
			uint64_t time_ns)
{
	struct mt_replay_image *image = mt_replay_image_now(process);
	struct mt_replay_totals *totals = &replay->totals;

	if (process->sums.bytes > image->peak.bytes) {
		image->peak.bytes = process->sums.bytes;
		image->peak.inherited_bytes = process->sums.inherited_bytes;
		image->peak.blocks = process->sums.blocks;
		image->peak.time_ns = time_ns;
	}
	if (totals->live_bytes > totals->peak.bytes) {
		totals->peak.bytes = totals->live_bytes;
		totals->peak.blocks = totals->live_blocks;
		totals->peak.time_ns = time_ns;
	}
}

static int begin_block(struct mt_replay *replay, struct mt_replay_process *process,
		       const struct mt_event *event)
{
	struct mt_live_block block = { event->addr, event->size, process->owner, 0 };
	struct mt_replay_image *image = mt_replay_image_now(process);
	struct mt_finding finding = { .addr = event->addr };
	struct mt_live_block old;
	int ret = mt_live_table_insert(&process->live, &block, &old);

	if (ret < 0)
		return ret;
	if (ret) {
		forget_block(replay, process, &old);
		if (old.owner == process->owner) {
			finding.before_size = old.size;
			mt_replay_find(replay, MT_FIND_ALLOC_OVER_LIVE, event, &finding);
		} else {
			image->inherited_ended++;
			replay->totals.inherited_ended++;
		}
	}
	process->sums.blocks++;
	process->sums.bytes += event->size;
	replay->totals.live_blocks++;
	replay->totals.live_bytes += event->size;
	image->counts.allocated_bytes += event->size;
	replay->totals.counts.allocated_bytes += event->size;
	raise_peaks(replay, process, event->timestamp_ns);
	return 0;
}

int mt_replay_heap_event(struct mt_replay *replay, struct mt_replay_process *process,
			 const struct mt_event *event)
{
	int ret;

	if (event->type == MT_EVENT_FREE)
		return end_block(replay, process, event, event->addr);
	/* An old address of 0 is realloc(NULL, size): nothing ends. */
	if (event->type == MT_EVENT_REALLOC && event->flags & MT_EVENT_HAS_OLD && event->aux) {
		mt_replay_image_now(process)->counts.reallocs_of_block++;
		replay->totals.counts.reallocs_of_block++;
		ret = end_block(replay, process, event, event->aux);
		if (ret)
			return ret;
	}
	return begin_block(replay, process, event);
}

static int note_use(struct mt_replay *replay, const struct mt_event *event)
{
	if (replay->uses_count == replay->uses_cap) {
		size_t cap = replay->uses_cap ? replay->uses_cap * 2 : 64;
		struct mt_stack_use *uses = reallocarray(replay->uses, cap, sizeof(*uses));

		if (!uses)
			return -ENOMEM;
		replay->uses = uses;
		replay->uses_cap = cap;
	}
	replay->uses[replay->uses_count].event = *event;
	replay->uses[replay->uses_count].index = replay->index;
	replay->uses_count++;
	return 0;
}

int mt_replay_stack_event(struct mt_replay *replay, const struct mt_event *event)
{
	uint32_t *state;
	int ret;

	if (event->type == MT_EVENT_STACK) {
		state = mt_u64_map_get(&replay->stacks, event->stack->hash);
		if (!state || *state != STACK_DEFINED)
			replay->totals.stacks_defined++;
		ret = mt_u64_map_put(&replay->stacks, event->stack->hash, STACK_DEFINED);
		return ret < 0 ? ret : 0;
	}
	if (mt_u64_map_get(&replay->stacks, event->stack_hash))
		return 0;
	ret = mt_u64_map_put(&replay->stacks, event->stack_hash, STACK_USED);
	return ret < 0 ? ret : note_use(replay, event);
}

int mt_replay_frame_end(struct mt_replay *replay)
{
	for (size_t i = 0; i < replay->uses_count; i++) {
		const struct mt_stack_use *use = &replay->uses[i];
		uint32_t *state = mt_u64_map_get(&replay->stacks, use->event.stack_hash);
		struct mt_finding finding = { .addr = use->event.stack_hash };

		if (!state || *state != STACK_USED)
			continue;
		*state = STACK_UNDEFINED;
		replay->index = use->index;
		mt_replay_find(replay, MT_FIND_STACK_UNDEFINED, &use->event, &finding);
	}
	replay->uses_count = 0;
	return 0;
}
