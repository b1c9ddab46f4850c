/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Events of an artifact, in its order -> the live heap of every process over time, and every place
 * where the events contradict each other.
 *
 * What the figures mean (stat and verify print these, reports will):
 * - Live blocks are those of Malloc, Calloc, AlignedAlloc and Realloc. A process's live set starts
 *   with what it inherited at Fork; inherited blocks are told apart from its own.
 * - The tree's live bytes are the own blocks of all processes together.
 * - An image is what runs in a process between its start or Exec and the next Exec or its end.
 *   Exec and Exit drop the address space; what was live then is kept as the image's `left`.
 * - A life is one process: a pid that is used again after Exit is another life.
 *
 * An allocation over an inherited block ends that copy and is counted, no contradiction: the parent
 * runs on during fork.
 *
 * Memory: the live blocks (shared between forks until they change), and some hundred bytes for each
 * process, image and thread. Nothing grows with the number of events.
 *
 * Threads: the calls for one replay are made by one thread at a time. The replay may have threads
 * of its own, which work only inside mt_replay_events(): the live tables are split into shards by
 * the block's address, and the threads take the events of each shard to its tables at the same
 * time. What they find is put together in the order of the events (replay_internal.h tells how), so
 * all results are the same for any number of threads.
 */
#ifndef MT_TOOLS_REPLAY_H
#define MT_TOOLS_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

/* Sizes come from a file that may claim anything: 64 bits would overflow. */
typedef unsigned __int128 mt_sum;

struct mt_peak {
	mt_sum bytes;
	mt_sum inherited_bytes; /* how much of them; 0 for the tree */
	uint64_t blocks;
	uint64_t time_ns;
};

struct mt_live_sums {
	uint64_t blocks; /* own and inherited */
	uint64_t inherited_blocks;
	mt_sum bytes;
	mt_sum inherited_bytes;
};

struct mt_replay_counts {
	uint64_t kinds[MT_EVENT_TYPES];
	uint64_t reallocs_of_block; /* Realloc events that ended an old block */
	mt_sum allocated_bytes;
};

enum mt_image_start {
	MT_IMAGE_FIRST, /* the first event of the process is not a Fork or Exec */
	MT_IMAGE_FORK,
	MT_IMAGE_EXEC,
};

struct mt_replay_image {
	enum mt_image_start start;
	uint64_t first_ns, last_ns;
	struct mt_replay_counts counts;
	struct mt_live_sums inherited; /* at its start */
	struct mt_live_sums left;      /* at its end, or now */
	struct mt_peak peak;	       /* of live bytes, inherited ones included */
	uint64_t inherited_ended;      /* inherited copies ended by an allocation over them */
	char *path;		       /* of its first Mapping event; NULL: none */
	uint32_t path_len;
};

/* Findings about blocks, counted for each process. */
struct mt_replay_mismatches {
	uint64_t allocs_over_live;
	uint64_t double_frees;
	uint64_t unknown_frees;
};

struct mt_replay_process {
	int32_t pid;
	int32_t parent_pid; /* when forked */
	bool forked;
	bool exited;
	uint64_t threads;
	uint32_t images_count; /* at least 1 */
	uint32_t images_cap;
	struct mt_replay_image *images;
	struct mt_replay_mismatches mismatches;

	/* How the replay goes on; what is route's is ahead by some events (replay_internal.h). */
	uint32_t index;
	uint32_t route_owner; /* marks the blocks of its newest image */
	bool route_exited;
	uint32_t owner;
	struct mt_live_sums sums;
};

enum mt_finding_kind {
	MT_FIND_ALLOC_OVER_LIVE,  /* the address was live already */
	MT_FIND_DOUBLE_FREE,	  /* the address was freed a short while before */
	MT_FIND_UNKNOWN_FREE,	  /* no block is live there */
	MT_FIND_TIME_BACK,	  /* the timestamp is before that of an earlier event */
	MT_FIND_FORK_AFTER_EVENT, /* the child had events before its Fork */
	MT_FIND_FORK_BY_DEAD,	  /* the parent had exited */
	MT_FIND_FORK_OF_SELF,	  /* child and parent are the same */
	MT_FIND_AFTER_EXIT,	  /* an event of a process that had exited */
	MT_FIND_EXIT_TWICE,
	MT_FIND_STACK_UNDEFINED, /* a stack hash without a Stack event up to the end of the frame */
	MT_FIND_KINDS
};

/* Short, stable names of the findings, for JSON; and what they mean in words. */
const char *mt_finding_name(enum mt_finding_kind kind);
const char *mt_finding_text(enum mt_finding_kind kind);

struct mt_finding {
	enum mt_finding_kind kind;
	uint64_t frame; /* where the event stands */
	uint64_t index;
	const struct mt_event *event;
	uint64_t addr;	 /* the event's, but for a Realloc that frees its old_addr, for a stack its
			    hash */
	bool has_before; /* before_*: where the earlier free of a double free stands */
	uint64_t before_frame;
	uint64_t before_index;
	uint64_t before_size; /* alloc over live: of the block that was there */
	uint64_t before_ns;   /* time back: the time that was reached before */
};

/* Called inside mt_replay_events; must not call the replay. */
typedef void mt_finding_fn(void *context, const struct mt_finding *finding);

struct mt_replay_options {
	mt_finding_fn *on_finding; /* may be NULL: findings are only counted */
	void *context;
	unsigned threads; /* to use, the caller's included; 0 is 1 */
};

struct mt_replay_totals {
	uint64_t events;
	uint64_t threads;
	uint64_t first_ns, last_ns; /* earliest and latest; both 0 without events */
	struct mt_replay_counts counts;
	uint64_t inherited_ended;
	uint64_t live_blocks; /* own blocks now, of all processes */
	mt_sum live_bytes;
	struct mt_peak peak;
	uint64_t findings[MT_FIND_KINDS];
	uint64_t stacks_defined; /* distinct hashes */
};

struct mt_replay;

/* Returns 0 or -ENOMEM. */
int mt_replay_new(const struct mt_replay_options *options, struct mt_replay **ret_replay);
void mt_replay_free(struct mt_replay *replay);

/*
 * Replays `count` events that follow each other in data frame `frame`, the first of them at
 * `first_index`. Returns 0 or -ENOMEM, after which the replay can only be freed.
 */
int mt_replay_events(struct mt_replay *replay, const struct mt_event *events, size_t count,
		     uint64_t frame, uint64_t first_index);

/* The data frame has ended: stacks that its events name have to be known by now. */
int mt_replay_frame_end(struct mt_replay *replay);

const struct mt_replay_totals *mt_replay_totals(struct mt_replay *replay);

/* All lives in the order of their first event; valid until the next event or the end. */
size_t mt_replay_processes(const struct mt_replay *replay,
			   const struct mt_replay_process *const **ret_list);

/* Sums over the images of a process; its highest peak. */
void mt_replay_process_sum(const struct mt_replay_process *process,
			   struct mt_replay_counts *ret_counts, struct mt_peak *ret_peak);

#endif
