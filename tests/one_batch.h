/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In place of sidecar/encoder.c: an encoder with one batch that goes round, for programs that want
 * to see what the order engine hands over and nothing else. It is never behind and never waited
 * for. One thread, the engine's.
 */
#ifndef MT_TESTS_ONE_BATCH_H
#define MT_TESTS_ONE_BATCH_H

#include "sidecar/batch.h"
#include "sidecar/encoder.h"

struct mt_encoder {
	struct mt_batch *batch;
	/* Is given each batch that the engine submits, and keeps no pointer into it. */
	void (*submitted)(void *context, const struct mt_batch *batch);
	void *context;
};

#endif
