/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "tools/replay_internal.h"

static int turns_room(struct mt_replay_step *step)
{
	size_t cap = step->turns_cap ? step->turns_cap * 2 : 16;
	struct mt_replay_turn *turns;

	if (step->turns_count < step->turns_cap)
		return 0;
	turns = reallocarray(step->turns, cap, sizeof(*turns));
	if (!turns)
		return -ENOMEM;
	step->turns = turns;
	step->turns_cap = cap;
	return 0;
}

static int ops_room(struct mt_op_list *list)
{
	size_t cap = list->cap ? list->cap * 2 : 256;
	struct mt_replay_op *ops = reallocarray(list->ops, cap, sizeof(*ops));

	if (!ops)
		return -ENOMEM;
	list->ops = ops;
	list->cap = cap;
	return 0;
}

/*
 * Puts an op into the list of its shard, or none, without a branch on its kind: that is as good as
 * random.
 */
static inline int put_op(struct mt_replay *replay, struct mt_replay_step *step,
			 enum mt_op_kind kind, uint64_t addr, size_t event)
{
	const struct mt_replay_process *life = replay->route_last;
	struct mt_op_list *list = &step->lists[mt_replay_shard_of(replay, addr)];

	if (list->count == list->cap && ops_room(list))
		return -ENOMEM;
	list->ops[list->count] = (struct mt_replay_op){ .addr = addr,
							.size = step->events[event].size,
							.owner = life->route_owner,
							.life = life->index,
							.event = (uint32_t)event,
							.kind = (uint8_t)kind };
	list->count += kind != MT_OP_NONE;
	return 0;
}

/* The current life of a pid, or NULL. */
static struct mt_replay_process *process_of(const struct mt_replay *replay, int32_t pid)
{
	uint32_t *index;

	if (replay->route_last && replay->route_last->pid == pid)
		return replay->route_last;
	index = mt_u64_map_get(&replay->pids, (uint32_t)pid);
	return index ? replay->processes[*index] : NULL;
}

/* A new life of the pid, without an image yet. */
static int start_process(struct mt_replay *replay, int32_t pid,
			 struct mt_replay_process **ret_process)
{
	struct mt_replay_process *process;
	int ret;

	if (replay->processes_count == replay->processes_cap) {
		size_t cap = replay->processes_cap ? replay->processes_cap * 2 : 16;
		struct mt_replay_process **list;

		list = reallocarray(replay->processes, cap, sizeof(*list));
		if (!list)
			return -ENOMEM;
		replay->processes = list;
		replay->processes_cap = cap;
	}
	if (replay->processes_count == UINT32_MAX)
		return -ENOMEM;
	ret = mt_u64_map_put(&replay->pids, (uint32_t)pid, (uint32_t)replay->processes_count);
	if (ret < 0)
		return ret;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->index = (uint32_t)replay->processes_count;
	replay->processes[replay->processes_count++] = process;
	*ret_process = process;
	return 0;
}

static int start_image(struct mt_replay *replay, struct mt_replay_turn *turn,
		       enum mt_image_start start)
{
	if (replay->owners == UINT32_MAX)
		return -ENOMEM;
	turn->starts_image = true;
	turn->start = (uint8_t)start;
	turn->owner = turn->life->route_owner = ++replay->owners;
	return 0;
}

static void drop(struct mt_replay_turn *turn, struct mt_replay_process *process)
{
	turn->dropped = process;
	turn->changes_tables = true;
}

/* A Fork event: whether it may stand here, and the child. */
static int fork_turn(struct mt_replay *replay, const struct mt_event *event,
		     struct mt_replay_turn *turn)
{
	int32_t parent_pid = (int32_t)event->aux;
	struct mt_replay_process *child = process_of(replay, event->pid);
	struct mt_replay_process *parent;
	int ret;

	if (child && !child->route_exited) {
		drop(turn, child);
		child->route_exited = true;
	}
	parent = process_of(replay, parent_pid);
	turn->of_self = parent_pid == event->pid;
	turn->by_dead = !turn->of_self && parent && parent->route_exited;
	ret = start_process(replay, event->pid, &turn->life);
	if (ret)
		return ret;
	turn->life->forked = true;
	turn->life->parent_pid = parent_pid;
	turn->parent = parent;
	turn->inherits = parent && !parent->route_exited;
	turn->changes_tables |= turn->inherits;
	return start_image(replay, turn, MT_IMAGE_FORK);
}

/* Finds whose the event is, with what it begins and ends. */
static int make_turn(struct mt_replay *replay, const struct mt_event *event,
		     struct mt_replay_turn *turn)
{
	struct mt_replay_process *process;
	bool exec = event->type == MT_EVENT_EXEC;
	int ret;

	if (event->type == MT_EVENT_FORK)
		return fork_turn(replay, event, turn);
	process = process_of(replay, event->pid);
	turn->life = process;
	if (process && !process->route_exited) {
		if (event->type == MT_EVENT_EXIT) {
			drop(turn, process);
			process->route_exited = true;
		}
		if (!exec)
			return 0;
		drop(turn, process);
		return start_image(replay, turn, MT_IMAGE_EXEC);
	}
	if (process) {
		/* The kernel goes on counting pages down while a process ends. */
		if (event->type == MT_EVENT_RSS || event->type == MT_EVENT_RMAP)
			return 0;
		turn->exit_twice = event->type == MT_EVENT_EXIT;
		if (turn->exit_twice)
			return 0;
		turn->after_exit = true;
	}
	ret = start_process(replay, event->pid, &turn->life);
	if (ret)
		return ret;
	if (event->type == MT_EVENT_EXIT)
		turn->life->route_exited = true;
	return start_image(replay, turn, exec ? MT_IMAGE_EXEC : MT_IMAGE_FIRST);
}

static int take_turn(struct mt_replay *replay, struct mt_replay_step *step, size_t event)
{
	int ret = turns_room(step);
	struct mt_replay_turn *turn;

	if (ret)
		return ret;
	turn = &step->turns[step->turns_count];
	*turn = (struct mt_replay_turn){ .event = (uint32_t)event };
	ret = make_turn(replay, &step->events[event], turn);
	if (ret)
		return ret;
	replay->route_last = turn->life;
	for (unsigned i = 0; turn->changes_tables && i < replay->shards_count; i++) {
		struct mt_op_list *list = &step->lists[i];

		if (list->count == list->cap && ops_room(list))
			return -ENOMEM;
		list->ops[list->count++] =
			(struct mt_replay_op){ .kind = MT_OP_TURN,
					       .event = (uint32_t)step->turns_count };
	}
	step->turns_count++;
	return 0;
}

/* Fork, Exec and Exit change what lives. */
static bool is_turning(uint8_t type)
{
	return type >= MT_EVENT_FORK && type <= MT_EVENT_EXIT;
}

int mt_replay_route(struct mt_replay *replay, struct mt_replay_step *step)
{
	static const uint8_t kinds[MT_EVENT_TYPES] = {
		[MT_EVENT_MALLOC] = MT_OP_BEGIN,
		[MT_EVENT_CALLOC] = MT_OP_BEGIN,
		[MT_EVENT_ALIGNED_ALLOC] = MT_OP_BEGIN,
		[MT_EVENT_REALLOC] = MT_OP_BEGIN,
		[MT_EVENT_FREE] = MT_OP_END,
	};

	step->turns_count = 0;
	for (unsigned i = 0; i < replay->shards_count; i++)
		step->lists[i].count = step->lists[i].next = 0;
	for (size_t i = 0; i < step->count; i++) {
		const struct mt_event *event = &step->events[i];
		struct mt_replay_process *life = replay->route_last;
		int ret = 0;

		/* Account starts each step with a turn. */
		if (!i || life->pid != event->pid || life->route_exited || is_turning(event->type))
			ret = take_turn(replay, step, i);
		if (!ret && mt_replay_has_old(event))
			ret = put_op(replay, step, MT_OP_END, event->aux, i);
		if (!ret)
			ret = put_op(replay, step, kinds[event->type], event->addr, i);
		if (ret)
			return ret;
	}
	return 0;
}
