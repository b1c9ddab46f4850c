/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "tools/replay_internal.h"

enum stack_state {
	STACK_DEFINED,
	STACK_USED,	 /* in this frame, not defined yet */
	STACK_UNDEFINED, /* was said */
};

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
