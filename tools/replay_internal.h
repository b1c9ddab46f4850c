/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a replay is made, for its parts only. Events go through in steps of some thousand, and each
 * step through three stages:
 *
 *                   main thread          any thread, shard by shard       main thread
 *   events --------> route -------------> ops of shard 0 ---> run ------> account ----> totals,
 *                    whose event is it,   ops of shard 1 ---> run         sums, peaks,  images,
 *                    begin and end lives  ...                             findings      findings
 *
 * - Route (replay_route.c) knows processes and images, but no block. It turns what heap events do
 *   into ops, one for each address that an event touches, and puts each op into the list of the
 *   shard that the address belongs to. Fork, Exec and Exit change the tables of all shards: these
 *   lists all get an op for it, at its place.
 * - Run (replay_shard.c) takes the ops of one shard in their order to the shard's live tables, and
 *   puts into each op what stood at its address. A shard has a table for every process: no shard
 *   needs another, so that they run at the same time, and a shard may be steps ahead of another.
 * - Account (replay_account.c) goes over the events of a step again, in their order, when
 *   all shards are through it. It takes from each shard's list the next op as it comes to an event
 *   of that shard, so it knows by how much the event changes the live bytes of its process and of
 *   the tree, and adds up. Peaks, their times and findings are therefore those of the order of the
 *   file, not of the shards: the same for any number of threads and shards.
 *
 * A realloc that moves its block from one shard to another is two ops in two lists.
 *
 * What route and account know of a process differs by the steps between them: members route_* are
 * route's, the others account's.
 */
#ifndef MT_TOOLS_REPLAY_INTERNAL_H
#define MT_TOOLS_REPLAY_INTERNAL_H

#include "tools/live_table.h"
#include "tools/replay.h"
#include "tools/replay_pool.h"
#include "tools/u64_map.h"

/*
 * The last free of an address, by a few bits of it: enough to tell most double frees from frees of
 * unknown blocks, in bounded memory, and never wrong when it tells. The first bits are those that
 * choose the shard: each shard has a part of its own.
 */
#define MT_RECENT_FREES 4096u
#define MT_RECENT_BITS	12u

/* Threads seen lately, by their tid's last bits: threads take turns event by event. */
#define MT_RECENT_THREADS 256u

#define MT_SHARDS_MAX 32u
#define MT_SHARD_BITS 5u

struct mt_recent_free {
	uint64_t addr;
	uint64_t frame;
	uint32_t index;
	uint32_t owner; /* the image that freed; 0: empty */
};

/* An event that names a stack not yet defined; one for each hash and frame. */
struct mt_stack_use {
	struct mt_event event;
	uint64_t index;
};

enum mt_op_kind {
	MT_OP_NONE,  /* in no list */
	MT_OP_BEGIN, /* a block begins at addr */
	MT_OP_END,   /* the block at addr ends */
	MT_OP_TURN,  /* the tables change as turn number `event` says */
};

/* What stood at the address. */
enum mt_op_result {
	MT_OP_NOTHING,
	MT_OP_BLOCK,	    /* a block of `size`, of the image `owner` */
	MT_OP_FREED_BEFORE, /* nothing; the free before stands in frame `size` at index `owner` */
};

struct mt_replay_op {
	uint64_t addr;
	uint64_t size;	/* of the block that begins; then as the result says */
	uint32_t owner; /* the image that does it; then as the result says */
	uint32_t life;	/* index of the process */
	uint32_t event; /* place in the step */
	uint8_t kind;	/* enum mt_op_kind */
	uint8_t result; /* enum mt_op_result */
	uint16_t reserved;
};

/* Whose the events from `event` on are, and what that event does to processes and images. */
struct mt_replay_turn {
	uint32_t event; /* place in the step */
	uint8_t start;	/* enum mt_image_start, when starts_image */
	bool starts_image;
	bool inherits;	     /* the blocks of its parent */
	bool changes_tables; /* there is an op of it in every shard */
	bool of_self;	     /* Fork of the process by itself */
	bool by_dead;	     /* Fork by one that had exited */
	bool after_exit;     /* the process had exited: this is another life of its pid */
	bool exit_twice;
	struct mt_replay_process *life;
	struct mt_replay_process *dropped; /* its address space goes; may be life */
	struct mt_replay_process *parent;  /* of a Fork; may have exited */
	uint32_t owner;			   /* of the image that starts */
};

struct mt_op_list {
	struct mt_replay_op *ops;
	size_t count, cap;
	size_t next; /* account's */
};

struct mt_replay_step {
	const struct mt_event *events;
	size_t count;
	uint64_t frame;
	uint64_t first_index;
	struct mt_replay_turn *turns;
	size_t turns_count, turns_cap;
	struct mt_op_list lists[MT_SHARDS_MAX];
};

struct mt_replay_shard {
	struct mt_live_table *tables; /* by the index of the process */
	size_t tables_count;
	struct mt_live_arena *arena;   /* the tables' */
	struct mt_recent_free *recent; /* all shards' */
};

struct mt_replay {
	struct mt_replay_options options;
	struct mt_replay_totals totals; /* sums over images only when it is asked for */
	struct mt_replay_process **processes;
	size_t processes_count, processes_cap;

	/* Route. */
	struct mt_replay_process *route_last; /* whose the last event was */
	struct mt_u64_map pids;		      /* pid -> index of its current life */
	uint32_t owners;		      /* given out */

	/* Account. */
	struct mt_replay_process *last;
	struct mt_u64_map threads; /* index of the process, tid */
	struct mt_u64_map stacks;  /* hash -> enum of replay_stack.c */
	struct mt_stack_use *uses;
	size_t uses_count, uses_cap;
	uint64_t frame; /* of the event that is accounted */
	uint64_t index;
	struct mt_replay_step *step;		    /* that it is in */
	uint64_t recent_threads[MT_RECENT_THREADS]; /* keys of `threads`; 0: none */

	unsigned shards_count; /* a power of two */
	struct mt_replay_shard shards[MT_SHARDS_MAX];
	struct mt_replay_pool *pool; /* NULL: this thread does it all */
	bool pool_tried;
	size_t step_events;
	uint64_t steps_given; /* to the pool */
	struct mt_replay_step steps[MT_POOL_STEPS];
	struct mt_recent_free recent[MT_RECENT_FREES];
};

/* The first bits of it choose the shard; without a seed, since findings depend on it. */
static inline uint64_t mt_replay_mix(uint64_t addr)
{
	return addr * UINT64_C(0x9e3779b97f4a7c15);
}

static inline unsigned mt_replay_shard_of(const struct mt_replay *replay, uint64_t addr)
{
	if (replay->shards_count == 1)
		return 0;
	return (unsigned)(mt_replay_mix(addr) >> (64 - MT_SHARD_BITS)) & (replay->shards_count - 1);
}

static inline struct mt_replay_image *mt_replay_image_now(struct mt_replay_process *process)
{
	return &process->images[process->images_count - 1];
}

/* Whether the event ends a block at its old address: one of 0 is realloc(NULL, size). */
static inline bool mt_replay_has_old(const struct mt_event *event)
{
	return event->type == MT_EVENT_REALLOC && event->flags & MT_EVENT_HAS_OLD && event->aux;
}

/* Fills the step's turns and lists from its events. 0 or -ENOMEM. */
int mt_replay_route(struct mt_replay *replay, struct mt_replay_step *step);

/* Takes the step's ops of this shard to its tables. 0 or -ENOMEM. Any thread. */
int mt_replay_shard_run(struct mt_replay *replay, unsigned shard, struct mt_replay_step *step);
void mt_replay_shard_fini(struct mt_replay_shard *shard);

/* Goes over the step's events when all its ops are done. 0 or -ENOMEM. */
int mt_replay_account(struct mt_replay *replay, struct mt_replay_step *step);

/* Counts and reports; what else there is to say stands in *finding. */
void mt_replay_find(struct mt_replay *replay, enum mt_finding_kind kind,
		    const struct mt_event *event, struct mt_finding *finding);

/* The event names or defines a stack. 0 or -ENOMEM. */
int mt_replay_stack_event(struct mt_replay *replay, const struct mt_event *event);

#endif
