/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay_internal.h"

/*
 * Events of a step. Alone: so few that they and their ops stay in the nearest caches from one stage
 * to the next. With threads: so many that a shard's part of them takes longer than handing it over.
 */
#define STEP_ALONE	  1024u
#define STEP_WITH_THREADS 8192u

/* More threads than shards help nobody. */
#define THREADS_MAX 16u

void mt_replay_find(struct mt_replay *replay, enum mt_finding_kind kind,
		    const struct mt_event *event, struct mt_finding *finding)
{
	replay->totals.findings[kind]++;
	if (!replay->options.on_finding)
		return;
	finding->kind = kind;
	if (!finding->addr)
		finding->addr = event->addr;
	finding->frame = replay->frame;
	finding->index = replay->index;
	finding->event = event;
	replay->options.on_finding(replay->options.context, finding);
}

int mt_replay_new(const struct mt_replay_options *options, struct mt_replay **ret_replay)
{
	struct mt_replay *replay = calloc(1, sizeof(*replay));

	if (!replay)
		return -ENOMEM;
	replay->options = *options;
	if (replay->options.threads > THREADS_MAX)
		replay->options.threads = THREADS_MAX;
	replay->step_events = STEP_ALONE;
	replay->shards_count = 1;
	/* Two for each thread, so that who is done early finds more to do. */
	while (options->threads > 1 && replay->shards_count < replay->options.threads * 2)
		replay->shards_count *= 2;
	for (unsigned i = 0; i < replay->shards_count; i++)
		replay->shards[i].recent = replay->recent;
	*ret_replay = replay;
	return 0;
}

static void process_free(struct mt_replay_process *process)
{
	for (uint32_t i = 0; i < process->images_count; i++)
		free(process->images[i].path);
	free(process->images);
	free(process);
}

static void step_fini(struct mt_replay_step *step)
{
	free(step->turns);
	for (unsigned i = 0; i < MT_SHARDS_MAX; i++)
		free(step->lists[i].ops);
}

void mt_replay_free(struct mt_replay *replay)
{
	if (!replay)
		return;
	mt_replay_pool_free(replay->pool);
	for (unsigned i = 0; i < MT_POOL_STEPS; i++)
		step_fini(&replay->steps[i]);
	for (unsigned i = 0; i < replay->shards_count; i++)
		mt_replay_shard_fini(&replay->shards[i]);
	for (size_t i = 0; i < replay->processes_count; i++)
		process_free(replay->processes[i]);
	free(replay->processes);
	free(replay->uses);
	mt_u64_map_fini(&replay->pids);
	mt_u64_map_fini(&replay->threads);
	mt_u64_map_fini(&replay->stacks);
	free(replay);
}

/* The step is those of all events that begin at `at`. */
static void set_step(const struct mt_replay *replay, struct mt_replay_step *step,
		     const struct mt_replay_step *all, size_t at)
{
	size_t left = all->count - at;

	step->events = all->events + at;
	step->count = left < replay->step_events ? left : replay->step_events;
	step->frame = all->frame;
	step->first_index = all->first_index + at;
}

/* One step after the other, in this thread. */
static int events_alone(struct mt_replay *replay, const struct mt_replay_step *all)
{
	struct mt_replay_step *step = &replay->steps[0];
	int ret = 0;

	for (size_t at = 0; at < all->count && !ret; at += step->count) {
		set_step(replay, step, all, at);
		ret = mt_replay_route(replay, step);
		for (unsigned i = 0; i < replay->shards_count && !ret; i++)
			ret = mt_replay_shard_run(replay, i, step);
		if (!ret)
			ret = mt_replay_account(replay, step);
	}
	return ret;
}

static int run_shard(void *context, unsigned shard, unsigned slot)
{
	struct mt_replay *replay = context;

	return mt_replay_shard_run(replay, shard, &replay->steps[slot]);
}

/* Waits for the oldest step and accounts for it. */
static int end_step(struct mt_replay *replay, uint64_t number)
{
	int ret = mt_replay_pool_wait(replay->pool);

	return ret ? ret : mt_replay_account(replay, &replay->steps[number % MT_POOL_STEPS]);
}

/* Routes steps ahead while the threads run others; all are done when it returns. */
static int events_with_threads(struct mt_replay *replay, const struct mt_replay_step *all)
{
	uint64_t first = replay->steps_given;
	int ret = 0;

	for (size_t at = 0; at < all->count && !ret;) {
		struct mt_replay_step *step = &replay->steps[replay->steps_given % MT_POOL_STEPS];

		if (replay->steps_given - first == MT_POOL_STEPS)
			ret = end_step(replay, first++);
		if (ret)
			break;
		set_step(replay, step, all, at);
		at += step->count;
		ret = mt_replay_route(replay, step);
		if (ret)
			break;
		mt_replay_pool_give(replay->pool);
		replay->steps_given++;
	}
	while (!ret && first < replay->steps_given)
		ret = end_step(replay, first++);
	return ret;
}

/*
 * The threads start with the first part of a file that is worth it. Without them the shards are run
 * one after the other, with the same results.
 */
static void start_threads(struct mt_replay *replay)
{
	if (replay->pool_tried)
		return;
	replay->pool_tried = true;
	if (!mt_replay_pool_new(replay->options.threads - 1, replay->shards_count, run_shard,
				replay, &replay->pool))
		replay->step_events = STEP_WITH_THREADS;
}

int mt_replay_events(struct mt_replay *replay, const struct mt_event *events, size_t count,
		     uint64_t frame, uint64_t first_index)
{
	const struct mt_replay_step all = {
		.events = events, .count = count, .frame = frame, .first_index = first_index
	};

	if (replay->options.threads > 1 && count >= STEP_WITH_THREADS)
		start_threads(replay);
	return replay->pool ? events_with_threads(replay, &all) : events_alone(replay, &all);
}

static void add_counts(struct mt_replay_counts *sum, const struct mt_replay_counts *counts)
{
	for (int kind = 0; kind < MT_EVENT_TYPES; kind++)
		sum->kinds[kind] += counts->kinds[kind];
	sum->reallocs_of_block += counts->reallocs_of_block;
	sum->allocated_bytes += counts->allocated_bytes;
}

const struct mt_replay_totals *mt_replay_totals(struct mt_replay *replay)
{
	struct mt_replay_totals *totals = &replay->totals;

	/* What each event would have to add twice is added up here. */
	totals->counts = (struct mt_replay_counts){ 0 };
	totals->inherited_ended = 0;
	for (size_t i = 0; i < replay->processes_count; i++) {
		const struct mt_replay_process *process = replay->processes[i];

		for (uint32_t k = 0; k < process->images_count; k++) {
			add_counts(&totals->counts, &process->images[k].counts);
			totals->inherited_ended += process->images[k].inherited_ended;
		}
	}
	return totals;
}

size_t mt_replay_processes(const struct mt_replay *replay,
			   const struct mt_replay_process *const **ret_list)
{
	/* What still lives has its live set as what it would leave. */
	for (size_t i = 0; i < replay->processes_count; i++) {
		struct mt_replay_process *process = replay->processes[i];

		if (!process->exited)
			mt_replay_image_now(process)->left = process->sums;
	}
	*ret_list = (const struct mt_replay_process *const *)replay->processes;
	return replay->processes_count;
}

void mt_replay_process_sum(const struct mt_replay_process *process,
			   struct mt_replay_counts *ret_counts, struct mt_peak *ret_peak)
{
	struct mt_replay_counts counts = { 0 };
	struct mt_peak peak = process->images[0].peak;

	for (uint32_t i = 0; i < process->images_count; i++) {
		const struct mt_replay_image *image = &process->images[i];

		add_counts(&counts, &image->counts);
		if (image->peak.bytes > peak.bytes)
			peak = image->peak;
	}
	*ret_counts = counts;
	*ret_peak = peak;
}

const char *mt_finding_name(enum mt_finding_kind kind)
{
	static const char *const names[] = {
		[MT_FIND_ALLOC_OVER_LIVE] = "alloc_over_live",
		[MT_FIND_DOUBLE_FREE] = "double_free",
		[MT_FIND_UNKNOWN_FREE] = "unknown_free",
		[MT_FIND_TIME_BACK] = "time_back",
		[MT_FIND_FORK_AFTER_EVENT] = "fork_after_event",
		[MT_FIND_FORK_BY_DEAD] = "fork_by_dead",
		[MT_FIND_FORK_OF_SELF] = "fork_of_self",
		[MT_FIND_AFTER_EXIT] = "event_after_exit",
		[MT_FIND_EXIT_TWICE] = "exit_twice",
		[MT_FIND_STACK_UNDEFINED] = "stack_undefined",
	};

	return names[kind];
}

const char *mt_finding_text(enum mt_finding_kind kind)
{
	static const char *const texts[] = {
		[MT_FIND_ALLOC_OVER_LIVE] = "block allocated while live",
		[MT_FIND_DOUBLE_FREE] = "block freed while dead",
		[MT_FIND_UNKNOWN_FREE] = "free of an unknown block",
		[MT_FIND_TIME_BACK] = "timestamp going back",
		[MT_FIND_FORK_AFTER_EVENT] = "Fork of a process that had events before",
		[MT_FIND_FORK_BY_DEAD] = "Fork by a process that had exited",
		[MT_FIND_FORK_OF_SELF] = "Fork of a process by itself",
		[MT_FIND_AFTER_EXIT] = "event of a process that had exited",
		[MT_FIND_EXIT_TWICE] = "Exit of a process that had exited",
		[MT_FIND_STACK_UNDEFINED] = "stack without a definition",
	};

	return texts[kind];
}
