/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/image.h"

#include <stdlib.h>

#include "common/pages.h"

#define UNATTACHED_MAX 256u /* images of one process that wait for their Exec */

static uint64_t granted_bytes(const struct mt_image *image)
{
	return (uint64_t)image->consumer.limit * image->consumer.shm.layout.chunk_bytes;
}

void mt_image_grant(struct mt_order *order, struct mt_image *image, uint64_t chunks)
{
	uint64_t bytes = image->consumer.shm.layout.chunk_bytes;
	uint64_t others = order->granted_bytes - granted_bytes(image), left;

	left = order->options.max_chunk_bytes > others ? order->options.max_chunk_bytes - others
						       : 0;
	if (chunks * bytes > left)
		chunks = left / bytes;
	if (chunks < MT_CHUNKS_FLOOR)
		chunks = MT_CHUNKS_FLOOR;
	if (chunks > image->consumer.shm.layout.chunk_count)
		chunks = image->consumer.shm.layout.chunk_count;
	mt_consumer_set_limit(&image->consumer, (uint32_t)chunks);
	order->granted_bytes = others + granted_bytes(image);
}

void mt_image_reclaim_grants(struct mt_order *order, const struct mt_image *needy)
{
	for (struct mt_image *image = order->images; image; image = image->next) {
		uint32_t bump = mt_load_acquire(&image->consumer.shm.header->bump);

		if (image == needy || bump + MT_CHUNKS_FLOOR >= image->consumer.limit)
			continue;
		mt_image_grant(order, image, bump + MT_CHUNKS_FLOOR);
	}
}

void mt_image_free(struct mt_order *order, struct mt_image *image)
{
	order->granted_bytes -= granted_bytes(image);
	for (uint32_t i = 0; i < image->reader_count; i++) {
		order->gone -= image->readers[i]->gone_round != 0;
		free(image->readers[i]);
	}
	for (uint32_t i = 0; i < image->consumer.procs.bump; i++)
		free(image->binds[i]);
	free(image->readers);
	mt_pages_free(image->binds, mt_image_binds_bytes(&image->consumer.shm));
	mt_consumer_fini(&image->consumer);
	free(image->path);
	free(image);
}

/*
 * Images of a process that has registered again without having used them: no honest one does that
 * (its first act is to claim a slot), and each costs memory. Of those that wait for their Exec only
 * so many are kept.
 */
static void drop_unused(struct mt_order *order, const struct mt_image *newer)
{
	struct mt_image **at = &order->images, *image;
	unsigned waiting = 0;

	while ((image = *at) != NULL) {
		bool waits = image->pid == newer->pid && !image->attached && !image->exec_asked;

		if (waits && !image->refused && waiting < UNATTACHED_MAX &&
		    mt_load_acquire(&image->consumer.shm.header->proc_bump) != 0) {
			waiting++;
			waits = false;
		}
		if (!waits || image->bind_count != 0 || image->queued != 0) {
			at = &image->next;
			continue;
		}
		*at = image->next;
		mt_consumer_close(&image->consumer);
		mt_image_free(order, image);
		order->sink.stats.corrupt_streams++;
	}
}

static void take_in_image(struct mt_order *order, struct mt_image *image)
{
	drop_unused(order, image);
	image->since_ns = order->now_ns;
	image->since_round = order->round;
	order->nested = order->nested || image->nested;
	image->users = 1; /* the process that registered */
	/* Without it a program learns of our death by the heartbeat alone: later, not wrong. */
	image->alive_held = mt_shm_hold_alive(&image->consumer.shm) == 0;
	order->granted_bytes += granted_bytes(image);
	if (order->granted_bytes > order->options.max_chunk_bytes)
		mt_image_grant(order, image, image->consumer.limit / 4);
	image->next = order->images;
	order->images = image;
}

void mt_images_take_in(struct mt_order *order)
{
	struct mt_image *image, *next, *oldest = NULL;

	pthread_mutex_lock(&order->intake_lock);
	image = order->intake;
	order->intake = NULL;
	order->intake_count = 0;
	pthread_mutex_unlock(&order->intake_lock);
	for (; image; image = next) {
		next = image->next;
		image->next = oldest;
		oldest = image;
	}
	for (image = oldest; image; image = next) {
		next = image->next;
		take_in_image(order, image);
	}
}
