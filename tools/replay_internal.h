/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What replay.c (processes and images) and replay_heap.c (blocks, stacks) share. Private to them.
 */
#ifndef MT_TOOLS_REPLAY_INTERNAL_H
#define MT_TOOLS_REPLAY_INTERNAL_H

#include "tools/replay.h"
#include "tools/u64_map.h"

/*
 * The last free of an address, by a few bits of it: enough to tell most double frees from frees of
 * unknown blocks, in bounded memory, and never wrong when it tells.
 */
#define MT_RECENT_FREES 8192u

struct mt_recent_free {
	uint64_t addr;
	uint64_t frame;
	uint32_t index;
	uint32_t owner; /* the image that freed; 0: empty */
};

/* Threads seen lately, by their tid's last bits: threads take turns event by event. */
#define MT_RECENT_THREADS 256u

/* An event that names a stack not yet defined; one for each hash and frame. */
struct mt_stack_use {
	struct mt_event event;
	uint64_t index;
};

struct mt_replay {
	struct mt_replay_options options;
	struct mt_replay_totals totals;
	struct mt_replay_process **processes;
	size_t processes_count, processes_cap;
	struct mt_replay_process *last; /* the current life of its pid */
	struct mt_u64_map pids;		/* pid -> index of its current life */
	struct mt_u64_map threads;	/* index of the life, tid */
	struct mt_u64_map stacks;	/* hash -> enum of replay_heap.c */
	struct mt_stack_use *uses;
	size_t uses_count, uses_cap;
	uint64_t frame; /* of the event that is replayed */
	uint64_t index;
	uint32_t owners;			    /* given out */
	uint64_t recent_threads[MT_RECENT_THREADS]; /* keys of `threads`; 0: none */
	struct mt_recent_free recent[MT_RECENT_FREES];
};

/* Counts and reports; what else there is to say stands in *finding. */
void mt_replay_find(struct mt_replay *replay, enum mt_finding_kind kind,
		    const struct mt_event *event, struct mt_finding *finding);

/* A heap event of a process that lives. 0 or -ENOMEM. */
int mt_replay_heap_event(struct mt_replay *replay, struct mt_replay_process *process,
			 const struct mt_event *event);

/* The event names or defines a stack. 0 or -ENOMEM. */
int mt_replay_stack_event(struct mt_replay *replay, const struct mt_event *event);

static inline struct mt_replay_image *mt_replay_image_now(struct mt_replay_process *process)
{
	return &process->images[process->images_count - 1];
}

#endif
