/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay_internal.h"

/*
 * How far ahead the table's pages are fetched: some misses of memory, of which each event has
 * about one in a heap larger than the caches.
 */
#define PREFETCH_EVENTS 12u

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
	*ret_replay = replay;
	return 0;
}

static void process_free(struct mt_replay_process *process)
{
	for (uint32_t i = 0; i < process->images_count; i++)
		free(process->images[i].path);
	free(process->images);
	mt_live_table_fini(&process->live);
	free(process);
}

void mt_replay_free(struct mt_replay *replay)
{
	if (!replay)
		return;
	for (size_t i = 0; i < replay->processes_count; i++)
		process_free(replay->processes[i]);
	free(replay->processes);
	free(replay->uses);
	mt_u64_map_fini(&replay->pids);
	mt_u64_map_fini(&replay->threads);
	mt_u64_map_fini(&replay->stacks);
	free(replay);
}

/* The current life of a pid, or NULL. */
static struct mt_replay_process *process_of(struct mt_replay *replay, int32_t pid)
{
	uint32_t *index;

	if (replay->last && replay->last->pid == pid)
		return replay->last;
	index = mt_u64_map_get(&replay->pids, (uint32_t)pid);
	if (!index)
		return NULL;
	replay->last = replay->processes[*index];
	return replay->last;
}

/* A new image at the end of the process's list, with what is live in it. */
static int start_image(struct mt_replay *replay, struct mt_replay_process *process,
		       enum mt_image_start start, uint64_t time_ns)
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
	if (replay->owners == UINT32_MAX)
		return -ENOMEM;
	process->owner = ++replay->owners;
	image = &process->images[process->images_count++];
	*image = (struct mt_replay_image){
		.start = start, .first_ns = time_ns, .last_ns = time_ns, .inherited = process->sums
	};
	image->peak = (struct mt_peak){ .bytes = process->sums.bytes,
					.inherited_bytes = process->sums.inherited_bytes,
					.blocks = process->sums.blocks,
					.time_ns = time_ns };
	return 0;
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

		list = reallocarray(replay->processes, cap, sizeof(process));
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
	process->last_tid = INT64_MIN;
	replay->processes[replay->processes_count++] = process;
	replay->last = process;
	*ret_process = process;
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
	mt_live_table_fini(&process->live);
}

static void end_process(struct mt_replay *replay, struct mt_replay_process *process)
{
	drop_address_space(replay, process);
	process->exited = true;
}

/* The parent's blocks, all of them, are what the child inherits. */
static void inherit(struct mt_replay_process *child, const struct mt_replay_process *parent)
{
	mt_live_table_share(&child->live, &parent->live);
	child->sums = parent->sums;
	child->sums.inherited_blocks = child->sums.blocks;
	child->sums.inherited_bytes = child->sums.bytes;
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

/* A Fork event: checks that it may stand here and starts the child. */
static int start_child(struct mt_replay *replay, const struct mt_event *event,
		       struct mt_replay_process **ret_process)
{
	int32_t parent_pid = (int32_t)event->aux;
	struct mt_replay_process *child = process_of(replay, event->pid);
	struct mt_replay_process *parent;
	const struct mt_replay_image *image;
	struct mt_finding finding = { 0 };
	int ret;

	if (child && !child->exited) {
		mt_replay_find(replay, MT_FIND_FORK_AFTER_EVENT, event, &finding);
		end_process(replay, child);
	}
	parent = process_of(replay, parent_pid);
	if (parent_pid == event->pid)
		mt_replay_find(replay, MT_FIND_FORK_OF_SELF, event, &finding);
	else if (parent && parent->exited)
		mt_replay_find(replay, MT_FIND_FORK_BY_DEAD, event, &finding);
	ret = start_process(replay, event->pid, &child);
	if (ret)
		return ret;
	child->forked = true;
	child->parent_pid = parent_pid;
	if (parent && !parent->exited)
		inherit(child, parent);
	ret = start_image(replay, child, MT_IMAGE_FORK, event->timestamp_ns);
	if (ret)
		return ret;
	*ret_process = child;
	image = parent ? mt_replay_image_now(parent) : NULL;
	if (!image || !image->path)
		return 0;
	return copy_path(mt_replay_image_now(child), image->path, image->path_len);
}

/* The process that the event belongs to, started when it is its first. */
static int process_for(struct mt_replay *replay, const struct mt_event *event,
		       struct mt_replay_process **ret_process)
{
	struct mt_replay_process *process;
	struct mt_finding finding = { 0 };
	bool exec = event->type == MT_EVENT_EXEC;
	int ret;

	if (event->type == MT_EVENT_FORK)
		return start_child(replay, event, ret_process);
	process = process_of(replay, event->pid);
	if (process && !process->exited) {
		*ret_process = process;
		if (!exec)
			return 0;
		drop_address_space(replay, process);
		return start_image(replay, process, MT_IMAGE_EXEC, event->timestamp_ns);
	}
	if (process) {
		/* The kernel goes on counting pages down while a process ends. */
		if (event->type == MT_EVENT_RSS || event->type == MT_EVENT_RMAP) {
			*ret_process = process;
			return 0;
		}
		if (event->type == MT_EVENT_EXIT) {
			mt_replay_find(replay, MT_FIND_EXIT_TWICE, event, &finding);
			*ret_process = process;
			return 0;
		}
		mt_replay_find(replay, MT_FIND_AFTER_EXIT, event, &finding);
	}
	ret = start_process(replay, event->pid, ret_process);
	if (ret)
		return ret;
	return start_image(replay, *ret_process, exec ? MT_IMAGE_EXEC : MT_IMAGE_FIRST,
			   event->timestamp_ns);
}

static int note_thread(struct mt_replay *replay, struct mt_replay_process *process, int32_t tid)
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
	process->last_tid = tid;
	process->threads += (unsigned)ret;
	replay->totals.threads += (unsigned)ret;
	return 0;
}

static void note_time(struct mt_replay *replay, const struct mt_event *event)
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

static int apply(struct mt_replay *replay, const struct mt_event *event)
{
	struct mt_replay_process *process = replay->last;
	struct mt_replay_image *image;
	int ret = 0;

	note_time(replay, event);
	if (!process || process->pid != event->pid || process->exited ||
	    event->type == MT_EVENT_FORK || event->type == MT_EVENT_EXEC)
		ret = process_for(replay, event, &process);
	if (!ret && process->last_tid != event->tid)
		ret = note_thread(replay, process, event->tid);
	if (!ret && (event->stack_hash || event->type == MT_EVENT_STACK))
		ret = mt_replay_stack_event(replay, event);
	if (ret)
		return ret;
	image = mt_replay_image_now(process);
	if (event->timestamp_ns > image->last_ns)
		image->last_ns = event->timestamp_ns;
	image->counts.kinds[event->type]++;
	replay->totals.counts.kinds[event->type]++;
	switch (event->type) {
	case MT_EVENT_MALLOC:
	case MT_EVENT_CALLOC:
	case MT_EVENT_ALIGNED_ALLOC:
	case MT_EVENT_REALLOC:
	case MT_EVENT_FREE:
		return mt_replay_heap_event(replay, process, event);
	case MT_EVENT_EXIT:
		if (!process->exited)
			end_process(replay, process);
		return 0;
	case MT_EVENT_MAPPING:
		if (image->path)
			return 0;
		return copy_path(image, event->mapping->path, event->mapping->path_len);
	default:
		return 0;
	}
}

static void prefetch(const struct mt_live_table *live, const struct mt_event *event)
{
	mt_live_table_prefetch(live, event->addr);
	if (event->type == MT_EVENT_REALLOC && event->flags & MT_EVENT_HAS_OLD)
		mt_live_table_prefetch(live, event->aux);
}

int mt_replay_events(struct mt_replay *replay, const struct mt_event *events, size_t count,
		     uint64_t frame, uint64_t first_index)
{
	int ret;

	replay->frame = frame;
	for (size_t i = 0; i < count; i++) {
		if (replay->last && i + PREFETCH_EVENTS < count)
			prefetch(&replay->last->live, &events[i + PREFETCH_EVENTS]);
		replay->index = first_index + i;
		ret = apply(replay, &events[i]);
		if (ret)
			return ret;
	}
	return 0;
}

const struct mt_replay_totals *mt_replay_totals(const struct mt_replay *replay)
{
	return &replay->totals;
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

		for (int kind = 0; kind < MT_EVENT_TYPES; kind++)
			counts.kinds[kind] += image->counts.kinds[kind];
		counts.reallocs_of_block += image->counts.reallocs_of_block;
		counts.allocated_bytes += image->counts.allocated_bytes;
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
