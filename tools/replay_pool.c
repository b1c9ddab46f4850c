/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/replay_pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct shard_state {
	uint64_t next; /* the step that it does next, counted from the first */
	bool busy;
};

struct mt_replay_pool {
	mt_replay_run_fn *run;
	void *context;
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t work;  /* a step was given, or the end */
	pthread_cond_t done;  /* a step may be done, or failed */
	uint64_t given, waited;
	unsigned left[MT_POOL_STEPS]; /* shards that have not done the step in this slot */
	int error;
	bool stop;
	unsigned shards_count;
	unsigned threads_count;
	struct shard_state *shards;
	pthread_t *threads;
};

/* The shard that is furthest behind of those that have something to do, or NULL. */
static struct shard_state *find_work(const struct mt_replay_pool *pool)
{
	struct shard_state *best = NULL;

	for (unsigned i = 0; i < pool->shards_count; i++) {
		struct shard_state *shard = &pool->shards[i];

		if (!shard->busy && shard->next < pool->given &&
		    (!best || shard->next < best->next))
			best = shard;
	}
	return pool->error ? NULL : best;
}

/* Runs one step of one shard; holds the lock before and after. */
static void work_once(struct mt_replay_pool *pool, struct shard_state *shard)
{
	unsigned slot = (unsigned)(shard->next % MT_POOL_STEPS);
	int ret;

	shard->busy = true;
	pthread_mutex_unlock(&pool->lock);
	ret = pool->run(pool->context, (unsigned)(shard - pool->shards), slot);
	pthread_mutex_lock(&pool->lock);
	shard->busy = false;
	shard->next++;
	if (ret && !pool->error)
		pool->error = ret;
	if (--pool->left[slot] == 0 || ret)
		pthread_cond_signal(&pool->done);
}

static void *worker(void *context)
{
	struct mt_replay_pool *pool = context;

	pthread_mutex_lock(&pool->lock);
	while (!pool->stop) {
		struct shard_state *shard = find_work(pool);

		if (shard)
			work_once(pool, shard);
		else
			pthread_cond_wait(&pool->work, &pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int mt_replay_pool_new(unsigned threads, unsigned shards, mt_replay_run_fn *run, void *context,
		       struct mt_replay_pool **ret_pool)
{
	struct mt_replay_pool *pool = calloc(1, sizeof(*pool));
	sigset_t all, before;
	int ret = 0;

	if (!pool)
		return -ENOMEM;
	pool->run = run;
	pool->context = context;
	pool->shards_count = shards;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->done, NULL);
	pool->shards = calloc(shards, sizeof(*pool->shards));
	pool->threads = calloc(threads, sizeof(*pool->threads));
	if (!pool->shards || !pool->threads)
		ret = -ENOMEM;
	/* Signals are for the caller's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (!ret && pool->threads_count < threads) {
		ret = -pthread_create(&pool->threads[pool->threads_count], NULL, worker, pool);
		pool->threads_count += !ret;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret) {
		mt_replay_pool_free(pool);
		return ret;
	}
	*ret_pool = pool;
	return 0;
}

void mt_replay_pool_free(struct mt_replay_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->threads_count; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->work);
	pthread_cond_destroy(&pool->done);
	free(pool->shards);
	free(pool->threads);
	free(pool);
}

void mt_replay_pool_give(struct mt_replay_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->left[pool->given++ % MT_POOL_STEPS] = pool->shards_count;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

int mt_replay_pool_wait(struct mt_replay_pool *pool)
{
	unsigned slot = (unsigned)(pool->waited % MT_POOL_STEPS);
	int ret;

	pthread_mutex_lock(&pool->lock);
	while (pool->left[slot] && !pool->error) {
		struct shard_state *shard = find_work(pool);

		if (shard)
			work_once(pool, shard);
		else
			pthread_cond_wait(&pool->done, &pool->lock);
	}
	pool->waited++;
	ret = pool->error;
	pthread_mutex_unlock(&pool->lock);
	return ret;
}
