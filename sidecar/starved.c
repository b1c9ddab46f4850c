/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/starved.h"

#include "sidecar/order_impl.h"

/*
 * Threads that wait this long wait in vain: all is read, or there was time to read all that a gate
 * may hold back.
 */
#define DRY_READ_NS   UINT64_C(100000000)
#define DRY_UNREAD_NS UINT64_C(2000000000)
#define DRY_ROUNDS    16u

static bool image_drained(const struct mt_image *image)
{
	for (uint32_t i = 0; i < image->reader_count; i++)
		if (!mt_reader_drained(image->readers[i]))
			return false;
	return true;
}

/*
 * Chunks can be gone for good without our books knowing: those of a stream that was stopped because
 * it broke the rules, or that a thread had when it was killed before it published them. So nobody
 * waits for long when none comes back. Holds until one does.
 */
static bool is_dry(struct mt_order *order, struct mt_image *image, uint32_t waiters)
{
	const struct mt_consumer *consumer = &image->consumer;
	uint64_t waited_ns;

	if (consumer->given_back != 0 || consumer->rest_begin != consumer->rest_end) {
		image->dry = false;
		image->dry_ns = 0;
	} else if (!image->dry && waiters == 0) {
		image->dry_ns = 0;
	} else if (image->dry_ns == 0) {
		image->dry_ns = order->now_ns;
		image->dry_round = order->round;
	} else if (!image->dry && order->round - image->dry_round >= DRY_ROUNDS) {
		waited_ns = order->now_ns - image->dry_ns;
		image->dry = waited_ns >= DRY_UNREAD_NS ||
			     (waited_ns >= DRY_READ_NS && image_drained(image));
	}
	return image->dry;
}

bool mt_image_is_starved(struct mt_order *order, struct mt_image *image, uint32_t waiters)
{
	const struct mt_consumer *consumer = &image->consumer;

	if (is_dry(order, image, waiters))
		return true;
	return waiters && consumer->given_back == 0 && mt_consumer_free_chunks(consumer) == 0 &&
	       order->gone == 0 && image_drained(image);
}
