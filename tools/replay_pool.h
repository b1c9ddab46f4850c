/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The threads of a replay: they run the shards of the steps that are given, each shard's steps in
 * their order, at most MT_POOL_STEPS steps at a time.
 *
 * Thread rule: all calls by the one thread that made the pool; `run` is called by any of the pool's
 * threads and by the caller of mt_replay_pool_wait(), which helps.
 */
#ifndef MT_TOOLS_REPLAY_POOL_H
#define MT_TOOLS_REPLAY_POOL_H

#include <stdint.h>

#define MT_POOL_STEPS 4u

struct mt_replay_pool;

/* Does shard `shard` of the step in slot `slot`. 0 or a negative errno. */
typedef int mt_replay_run_fn(void *context, unsigned shard, unsigned slot);

/* Starts `threads` threads beside the caller. Returns 0 or a negative errno. */
int mt_replay_pool_new(unsigned threads, unsigned shards, mt_replay_run_fn *run, void *context,
		       struct mt_replay_pool **ret_pool);

/* Ends the threads; what was given and not waited for is not done. NULL is nothing. */
void mt_replay_pool_free(struct mt_replay_pool *pool);

/*
 * The next step is in its slot, and may be run: the first in slot 0, and so on in turn. Fewer than
 * MT_POOL_STEPS may be given and not yet waited for.
 */
void mt_replay_pool_give(struct mt_replay_pool *pool);

/*
 * Until all shards have run the oldest step given and not yet waited for. Returns 0 or what a run
 * gave; then the steps behind are not run.
 */
int mt_replay_pool_wait(struct mt_replay_pool *pool);

#endif
