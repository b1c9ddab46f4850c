/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A batch: at most MT_BATCH_EVENTS events in artifact order, and the memory that they point to.
 *
 * Owner: one stage at a time. The merge fills it, mt_encoder_submit() passes it on, the encoder
 * gives it back empty through mt_encoder_take().
 */
#ifndef MT_SIDECAR_BATCH_H
#define MT_SIDECAR_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <urcu/wfcqueue.h>

#include "common/event.h"

struct mt_arena_block;

struct mt_batch {
	struct cds_wfcq_node node;
	uint64_t sequence; /* set by mt_encoder_submit */
	uint32_t count;
	struct mt_arena_block *arena;
	struct mt_event events[MT_BATCH_EVENTS];
};

/* Returns NULL when out of memory. Pages of events are touched as they are filled. */
struct mt_batch *mt_batch_new(void);
void mt_batch_free(struct mt_batch *batch);

/* Empties it; keeps the memory. */
void mt_batch_reset(struct mt_batch *batch);

/* Memory that lives as long as the batch's events, 8-byte aligned; NULL when out of memory. */
void *mt_batch_alloc(struct mt_batch *batch, size_t bytes);

#endif
