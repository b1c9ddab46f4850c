/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/loss.h"

#include <assert.h>
#include <string.h>

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
		ret_loss->total += ret_loss->by_cause[i];
	ret_loss->corrupt_streams = order->corrupt_streams;
	ret_loss->unread_streams = order->unread_streams;
}

bool mt_loss_is_none(const struct mt_loss *loss)
{
	return loss->total == 0 && loss->corrupt_streams == 0 && loss->unread_streams == 0;
}

const char *mt_loss_name(unsigned cause)
{
	static const char *const names[] = MT_LOSS_NAMES;

	static_assert(sizeof(names) / sizeof(names[0]) == MT_LOST_CAUSES, "a name for each cause");
	if (cause == MT_LOSS_AT_WRITE)
		return MT_LOSS_WRITE;
	if (cause == MT_LOSS_AT_KERNEL)
		return MT_LOSS_KERNEL;
	return cause < MT_LOST_CAUSES ? names[cause] : "unknown";
}

const char *mt_loss_text(unsigned cause)
{
	static const char *const texts[MT_LOSS_CAUSES] = {
		[MT_LOSS_POLICY] = "buffers were full (--on-full=drop)",
		[MT_LOSS_TIMEOUT] = "buffers were full for longer than --max-wait",
		[MT_LOSS_NO_SLOT] = "too many processes or threads at once",
		[MT_LOSS_SANDBOX] = "the program's sandbox forbids what recording needs",
		[MT_LOSS_SIGNAL] = "a signal handler allocated while its thread wrote a record",
		[MT_LOSS_LATE] = "the end of their process had to be written before them",
		[MT_LOSS_AT_WRITE] = "they could not be written to the file",
		[MT_LOSS_AT_KERNEL] =
			"kernel events came faster than they were read, or found no memory",
	};

	return cause < MT_LOSS_CAUSES ? texts[cause] : "unknown";
}
