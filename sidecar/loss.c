/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/loss.h"

#include <assert.h>
#include <string.h>

#include "common/chunk_consumer.h"
#include "common/run_meta.h"

void mt_loss_sum(const struct mt_order_stats *order, const struct mt_encoder_stats *encoder,
		 struct mt_loss *ret_loss)
{
	unsigned i;

	memset(ret_loss, 0, sizeof(*ret_loss));
	for (i = 0; i < MT_LOST_CAUSES; i++)
		ret_loss->by_cause[i] = order->lost[i];
	ret_loss->by_cause[MT_LOSS_AT_WRITE] = encoder->events_lost;
	ret_loss->by_cause[MT_LOSS_AT_KERNEL] = order->kernel_lost;
	for (i = 0; i < MT_LOSS_CAUSES; i++)
		mt_lost_add(&ret_loss->total, ret_loss->by_cause[i]);
	ret_loss->corrupt_streams = order->corrupt_streams;
	ret_loss->unread_streams = order->unread_streams;
}

bool mt_loss_is_none(const struct mt_loss *loss)
{
	return loss->total == 0 && loss->corrupt_streams == 0 && loss->unread_streams == 0;
}

static const struct mt_loss_words words[] = {
#define ROW(name, text) { name, text },
	MT_LOSS_TABLE(ROW)
#undef ROW
};

const char *mt_loss_name(unsigned cause)
{
	static_assert(sizeof(words) / sizeof(words[0]) == MT_LOSS_CAUSES, "words for each cause");
	return cause < MT_LOSS_CAUSES ? words[cause].name : "unknown";
}

const char *mt_loss_text(unsigned cause)
{
	return cause < MT_LOSS_CAUSES ? words[cause].text : "unknown";
}
