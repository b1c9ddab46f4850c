/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every lost record by cause, from all who may lose one.
 *
 * Threads: values.
 */
#ifndef MT_SIDECAR_LOSS_H
#define MT_SIDECAR_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "sidecar/encoder.h"
#include "sidecar/order.h"

enum mt_loss_cause {
	MT_LOSS_POLICY = MT_LOST_POLICY,
	MT_LOSS_TIMEOUT = MT_LOST_TIMEOUT,
	MT_LOSS_NO_SLOT = MT_LOST_NO_SLOT,
	MT_LOSS_SANDBOX = MT_LOST_SANDBOX,
	MT_LOSS_SIGNAL = MT_LOST_SIGNAL,
	MT_LOSS_LATE = MT_LOST_LATE,
	/* As MT_LOSS_TABLE goes on. */
	MT_LOSS_AT_WRITE = MT_LOST_CAUSES, /* recorded, and could not be written to the file */
	MT_LOSS_AT_KERNEL,		   /* kernel events that did not fit their ring */
	MT_LOSS_CAUSES
};

struct mt_loss {
	uint64_t total;
	uint64_t by_cause[MT_LOSS_CAUSES];
	/* How much was in these is not known. */
	uint64_t corrupt_streams; /* damaged by the program */
	uint64_t unread_streams;  /* for which the sidecar had no memory */
};

void mt_loss_sum(const struct mt_order_stats *order, const struct mt_encoder_stats *encoder,
		 struct mt_loss *ret_loss);

/* True when nothing was lost. */
bool mt_loss_is_none(const struct mt_loss *loss);

/* "policy", "timeout", ...: as the artifact's metadata name it. */
const char *mt_loss_name(unsigned cause);

/* "buffers were full (--on-full=drop)", ...: for people. */
const char *mt_loss_text(unsigned cause);

#endif
