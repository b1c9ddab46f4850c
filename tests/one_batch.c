/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/one_batch.h"

struct mt_batch *mt_encoder_take(struct mt_encoder *encoder)
{
	mt_batch_reset(encoder->batch);
	return encoder->batch;
}

struct mt_batch *mt_encoder_take_within(struct mt_encoder *encoder, unsigned timeout_ms)
{
	(void)timeout_ms; /* never waits */
	return mt_encoder_take(encoder);
}

void mt_encoder_load(struct mt_encoder *encoder, struct mt_encoder_load *ret_load)
{
	(void)encoder; /* is never behind */
	*ret_load = (struct mt_encoder_load){ .workers = 1, .in_flight = 4 };
}

bool mt_encoder_moves(struct mt_encoder *encoder)
{
	(void)encoder; /* is never waited for */
	return true;
}

void mt_encoder_submit(struct mt_encoder *encoder, struct mt_batch *batch)
{
	encoder->submitted(encoder->context, batch);
	mt_batch_reset(batch);
}
