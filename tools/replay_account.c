/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay_internal.h"

/* The next op of the step that is accounted, of the shard that the address belongs to. */
static inline const struct mt_replay_op *take_op(struct mt_replay *replay, uint64_t addr)
{
	struct mt_op_list *list = &replay->step->lists[mt_replay_shard_of(replay, addr)];

	return &list->ops[list->next++];
}

/* Takes a block that is no longer in the table out of the sums. */
static inline void forget_block(struct mt_replay *replay, struct mt_replay_process *process,
				const struct mt_replay_op *op)
{
	struct mt_live_sums *sums = &process->sums;

	sums->blocks--;
	sums->bytes -= op->size;
	if (op->owner == process->owner) {
		replay->totals.live_blocks--;
		replay->totals.live_bytes -= op->size;
	} else {
		sums->inherited_blocks--;
		sums->inherited_bytes -= op->size;
	}
}

static void find_bad_free(struct mt_replay *replay, struct mt_replay_process *process,
			  const struct mt_event *event, const struct mt_replay_op *op)
{
	struct mt_finding finding = { .addr = op->addr };

	if (op->result == MT_OP_FREED_BEFORE) {
		finding.has_before = true;
		finding.before_frame = op->size;
		finding.before_index = op->owner;
		process->mismatches.double_frees++;
		mt_replay_find(replay, MT_FIND_DOUBLE_FREE, event, &finding);
	} else {
		process->mismatches.unknown_frees++;
		mt_replay_find(replay, MT_FIND_UNKNOWN_FREE, event, &finding);
	}
}

/* A block was live at the address of one that begins. */
static void begin_over(struct mt_replay *replay, struct mt_replay_process *process,
		       struct mt_replay_image *image, const struct mt_event *event,
		       const struct mt_replay_op *op)
{
	struct mt_finding finding = { .addr = event->addr, .before_size = op->size };

	forget_block(replay, process, op);
	if (op->owner == process->owner) {
		process->mismatches.allocs_over_live++;
		mt_replay_find(replay, MT_FIND_ALLOC_OVER_LIVE, event, &finding);
	} else {
		image->inherited_ended++;
	}
}

/* An op of another result than a clean heap gives. False: the sums are as they have to be. */
static bool account_surprise(struct mt_replay *replay, struct mt_replay_process *process,
			     struct mt_replay_image *image, const struct mt_event *event,
			     const struct mt_replay_op *op)
{
	if (op->kind == MT_OP_BEGIN)
		begin_over(replay, process, image, event, op);
	else if (op->result == MT_OP_BLOCK)
		forget_block(replay, process, op);
	else
		find_bad_free(replay, process, event, op);
	return op->kind == MT_OP_BEGIN;
}

/*
 * One block begins or ends. Which of both is as good as random, and a branch on it would be guessed
 * wrong every other time: both are one sum.
 */
static inline void account_op(struct mt_replay *replay, struct mt_replay_process *process,
			      struct mt_replay_image *image, const struct mt_event *event,
			      uint64_t addr, bool begins)
{
	const struct mt_replay_op *op = take_op(replay, addr);
	struct mt_replay_totals *totals = &replay->totals;
	uint64_t mask = 0 - (uint64_t)begins;
	uint64_t begun = event->size & mask, ended = op->size & ~mask;
	uint64_t blocks = begins * 2ull - 1;
	bool own = op->owner == process->owner;
	mt_sum bytes;

	static_assert(MT_OP_NOTHING == 0 && MT_OP_BLOCK == 1,
		      "a clean op's result is that it ends");
	if ((((op->result ^ begins) & own) != 1) &&
	    !account_surprise(replay, process, image, event, op))
		return;
	image->counts.allocated_bytes += begun;
	process->sums.blocks += blocks;
	bytes = process->sums.bytes += (mt_sum)begun - ended;
	/* What ends raises no peak. */
	if (bytes > image->peak.bytes)
		image->peak = (struct mt_peak){ .bytes = bytes,
						.inherited_bytes = process->sums.inherited_bytes,
						.blocks = process->sums.blocks,
						.time_ns = event->timestamp_ns };
	totals->live_blocks += blocks;
	bytes = totals->live_bytes += (mt_sum)begun - ended;
	if (bytes > totals->peak.bytes)
		totals->peak = (struct mt_peak){ .bytes = bytes,
						 .blocks = totals->live_blocks,
						 .time_ns = event->timestamp_ns };
}

/* A new image at the end of the process's list, with what is live in it. */
static int start_image(struct mt_replay_process *process, const struct mt_replay_turn *turn,
		       uint64_t time_ns)
{
	struct mt_replay_image *image;

	if (process->images_count == process->images_cap) {
		uint32_t cap = process->images_cap ? process->images_cap * 2 : 1;

		if (cap < process->images_cap)
			return -ENOMEM;
		image = reallocarray(process->images, cap, sizeof(*image));
		if (!image)
			return -ENOMEM;
		process->images = image;
		process->images_cap = cap;
	}
	process->owner = turn->owner;
	image = &process->images[process->images_count++];
	*image = (struct mt_replay_image){ .start = turn->start,
					   .first_ns = time_ns,
					   .last_ns = time_ns,
					   .inherited = process->sums };
	image->peak = (struct mt_peak){ .bytes = process->sums.bytes,
					.inherited_bytes = process->sums.inherited_bytes,
					.blocks = process->sums.blocks,
					.time_ns = time_ns };
	return 0;
}

/* The address space is gone: keeps in the image what was live in it. */
static void drop_address_space(struct mt_replay *replay, struct mt_replay_process *process)
{
	struct mt_live_sums *sums = &process->sums;

	mt_replay_image_now(process)->left = *sums;
	replay->totals.live_blocks -= sums->blocks - sums->inherited_blocks;
	replay->totals.live_bytes -= sums->bytes - sums->inherited_bytes;
	*sums = (struct mt_live_sums){ 0 };
}

static void find_of_turn(struct mt_replay *replay, const struct mt_event *event,
			 const struct mt_replay_turn *turn)
{
	const struct {
		bool found;
		enum mt_finding_kind kind;
	} kinds[] = {
		{ event->type == MT_EVENT_FORK && turn->dropped, MT_FIND_FORK_AFTER_EVENT },
		{ turn->of_self, MT_FIND_FORK_OF_SELF },
		{ turn->by_dead, MT_FIND_FORK_BY_DEAD },
		{ turn->after_exit, MT_FIND_AFTER_EXIT },
		{ turn->exit_twice, MT_FIND_EXIT_TWICE },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct mt_finding finding = { 0 };

		if (kinds[i].found)
			mt_replay_find(replay, kinds[i].kind, event, &finding);
	}
}

static int copy_path(struct mt_replay_image *image, const char *path, uint32_t len)
{
	/* One byte more, so that an empty path is not NULL. */
	image->path = malloc((size_t)len + 1);
	if (!image->path)
		return -ENOMEM;
	if (len)
		memcpy(image->path, path, len);
	image->path[len] = 0;
	image->path_len = len;
	return 0;
}

static int account_turn(struct mt_replay *replay, const struct mt_event *event,
			const struct mt_replay_turn *turn)
{
	struct mt_replay_process *life = turn->life;
	const struct mt_replay_image *parent;
	int ret;

	find_of_turn(replay, event, turn);
	for (unsigned i = 0; turn->changes_tables && i < replay->shards_count; i++)
		replay->step->lists[i].next++;
	if (turn->dropped) {
		drop_address_space(replay, turn->dropped);
		turn->dropped->exited = event->type != MT_EVENT_EXEC;
	}
	if (turn->inherits) {
		/* The parent's blocks, all of them, are what the child inherits. */
		life->sums = turn->parent->sums;
		life->sums.inherited_blocks = life->sums.blocks;
		life->sums.inherited_bytes = life->sums.bytes;
	}
	replay->last = life;
	if (!turn->starts_image)
		return 0;
	/* An Exit that is all there is of its process. */
	life->exited = event->type == MT_EVENT_EXIT;
	ret = start_image(life, turn, event->timestamp_ns);
	if (ret || !turn->parent)
		return ret;
	parent = mt_replay_image_now(turn->parent);
	return parent->path ? copy_path(mt_replay_image_now(life), parent->path, parent->path_len)
			    : 0;
}

static inline int note_thread(struct mt_replay *replay, struct mt_replay_process *process,
			      int32_t tid)
{
	/* From 1, so that no key is 0. */
	uint64_t key = ((uint64_t)process->index + 1) << 32 | (uint32_t)tid;
	uint64_t *recent = &replay->recent_threads[(uint32_t)tid % MT_RECENT_THREADS];
	int ret;

	if (*recent == key)
		return 0;
	ret = mt_u64_map_put(&replay->threads, key, 0);
	if (ret < 0)
		return ret;
	*recent = key;
	process->threads += (unsigned)ret;
	replay->totals.threads += (unsigned)ret;
	return 0;
}

static inline void note_time(struct mt_replay *replay, const struct mt_event *event)
{
	struct mt_replay_totals *totals = &replay->totals;

	if (totals->events++ == 0) {
		totals->first_ns = event->timestamp_ns;
		totals->last_ns = event->timestamp_ns;
	} else if (event->timestamp_ns < totals->last_ns) {
		struct mt_finding finding = { .before_ns = totals->last_ns };

		mt_replay_find(replay, MT_FIND_TIME_BACK, event, &finding);
		if (event->timestamp_ns < totals->first_ns)
			totals->first_ns = event->timestamp_ns;
	} else {
		totals->last_ns = event->timestamp_ns;
	}
}

static inline int account_event(struct mt_replay *replay, const struct mt_event *event)
{
	struct mt_replay_process *process = replay->last;
	struct mt_replay_image *image = mt_replay_image_now(process);
	int ret = note_thread(replay, process, event->tid);

	if (!ret && (event->stack_hash || event->type == MT_EVENT_STACK))
		ret = mt_replay_stack_event(replay, event);
	if (event->timestamp_ns > image->last_ns)
		image->last_ns = event->timestamp_ns;
	image->counts.kinds[event->type]++;
	if (event->type <= MT_EVENT_FREE) {
		if (mt_replay_has_old(event)) {
			image->counts.reallocs_of_block++;
			account_op(replay, process, image, event, event->aux, false);
		}
		account_op(replay, process, image, event, event->addr,
			   event->type != MT_EVENT_FREE);
	} else if (event->type == MT_EVENT_MAPPING && !image->path && !ret) {
		ret = copy_path(image, event->mapping->path, event->mapping->path_len);
	}
	return ret;
}

int mt_replay_account(struct mt_replay *replay, struct mt_replay_step *step)
{
	size_t turn = 0;
	int ret = 0;

	replay->step = step;
	replay->frame = step->frame;
	for (size_t i = 0; i < step->count && !ret; i++) {
		const struct mt_event *event = &step->events[i];

		replay->index = step->first_index + i;
		note_time(replay, event);
		if (turn < step->turns_count && step->turns[turn].event == i)
			ret = account_turn(replay, event, &step->turns[turn++]);
		if (!ret)
			ret = account_event(replay, event);
	}
	return ret;
}
