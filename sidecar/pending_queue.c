/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The queue in which the kernel's events wait for the merge, in the order of their times. */
#include <stdlib.h>
#include <string.h>

#include "sidecar/order_impl.h"
#include "sidecar/patience.h"
#include "sidecar/pending.h"

static struct mt_kev_node *node_new(struct mt_order *order, const struct mt_kev *event,
				    uint64_t stamp, struct mt_image *image)
{
	uint32_t path_len = event->path ? event->path_len : 0;
	struct mt_kev_node *node = mt_patient_malloc(sizeof(*node) + path_len);

	if (!node) {
		order->sink.stats.kernel_lost++;
		order->kernel_lossy = true;
		return NULL;
	}
	*node = (struct mt_kev_node){ .event = *event, .stamp = stamp, .image = image };
	node->event.path = NULL;
	node->event.path_len = path_len;
	if (path_len)
		memcpy(node->path, event->path, path_len);
	return node;
}

/*
 * The place of a node that is not the last by its stamp. What a process did first comes first: the
 * stamps of two times that are equal, or nearly, are made with clock samples of two drains, and the
 * later time may get the lower stamp.
 */
static struct mt_kev_node **place_of(struct mt_order *order, struct mt_kev_node *node)
{
	struct mt_kev_node **at;

	for (at = &order->kernel_head; *at; at = &(*at)->next)
		if ((*at)->event.pid == node->event.pid && (*at)->stamp > node->stamp &&
		    (*at)->event.time_ns <= node->event.time_ns)
			node->stamp = (*at)->stamp;
	for (at = &order->kernel_head; *at && (*at)->stamp <= node->stamp;)
		at = &(*at)->next;
	return at;
}

static void enqueue(struct mt_order *order, struct mt_kev_node *node)
{
	struct mt_kev_node **at = order->kernel_tail;

	node->round = order->round;
	if (order->kernel_head && node->stamp < order->kernel_last_stamp)
		at = place_of(order, node);
	node->next = *at;
	*at = node;
	if (!node->next) {
		order->kernel_tail = &node->next;
		order->kernel_last_stamp = node->stamp;
	}
}

void mt_pending_add(struct mt_order *order, const struct mt_kev *event, uint64_t stamp,
		    struct mt_image *image)
{
	struct mt_kev_node *node = node_new(order, event, stamp, image);

	if (!node)
		return;
	if (image)
		image->queued++;
	enqueue(order, node);
}

void mt_pending_add_later(struct mt_order *order, const struct mt_kev *event, uint64_t stamp)
{
	struct mt_kev_node *node = node_new(order, event, stamp, NULL);

	if (!node)
		return;
	node->next = NULL;
	order->inbox_bytes += sizeof(*node) + node->event.path_len;
	*order->inbox_tail = node;
	order->inbox_tail = &node->next;
}

void mt_pending_take_inbox(struct mt_order *order)
{
	struct mt_kev_node *node = order->inbox, *next;

	order->inbox = NULL;
	order->inbox_tail = &order->inbox;
	order->inbox_bytes = 0;
	for (; node; node = next) {
		next = node->next;
		enqueue(order, node);
	}
}

void mt_pending_remove_head(struct mt_order *order)
{
	struct mt_kev_node *node = order->kernel_head;

	if (node->image)
		node->image->queued--;
	order->kernel_head = node->next;
	if (!order->kernel_head)
		order->kernel_tail = &order->kernel_head;
	free(node);
}

void mt_pending_free(struct mt_order *order)
{
	mt_pending_take_inbox(order);
	while (order->kernel_head)
		mt_pending_remove_head(order);
}
