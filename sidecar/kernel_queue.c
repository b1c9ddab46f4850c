// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sidecar/patience.h"

void mt_kqueue_fini(struct mt_kqueue *queue)
{
	free(queue->records);
	free(queue->bytes);
	memset(queue, 0, sizeof(*queue));
}

/* Makes room for `need` items of `size` bytes in all. */
static int array_reserve(void **array, size_t *capacity, size_t need, size_t size)
{
	size_t grown = *capacity ? *capacity : 64;
	void *moved;

	if (need <= *capacity)
		return 0;
	while (grown < need)
		grown *= 2;
	moved = mt_patient_realloc(*array, grown * size);
	if (!moved)
		return -ENOMEM;
	*array = moved;
	*capacity = grown;
	return 0;
}

void mt_kqueue_push(struct mt_kqueue *queue, enum mt_krecord_kind kind, const struct mt_kev *event)
{
	struct mt_krecord *record;
	void *records = queue->records, *bytes = queue->bytes;
	int err;

	err = array_reserve(&records, &queue->capacity, queue->count + 1, sizeof(*record));
	queue->records = records;
	if (!err) {
		err = array_reserve(&bytes, &queue->bytes_capacity,
				    queue->bytes_len + event->path_len, 1);
		queue->bytes = bytes;
	}
	if (err) {
		queue->lost += event->type == MT_KEV_LOST ? event->lost : 1;
		return;
	}
	record = &queue->records[queue->count++];
	record->event = *event;
	record->event.path = NULL;
	record->kind = kind;
	record->sequence = queue->sequence++;
	record->path_at = queue->bytes_len;
	if (event->path_len)
		memcpy(queue->bytes + queue->bytes_len, event->path, event->path_len);
	queue->bytes_len += event->path_len;
}

static int record_compare(const void *left, const void *right)
{
	const struct mt_krecord *a = left, *b = right;

	if (a->event.time_ns != b->event.time_ns)
		return a->event.time_ns < b->event.time_ns ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

void mt_kqueue_sort(struct mt_kqueue *queue)
{
	size_t i;

	/* Nearly always sorted already: one ring, or little in the others. */
	for (i = 1; i < queue->count; i++)
		if (record_compare(&queue->records[i - 1], &queue->records[i]) > 0)
			break;
	if (i < queue->count)
		qsort(queue->records, queue->count, sizeof(*queue->records), record_compare);
}

void mt_kqueue_drop(struct mt_kqueue *queue, size_t count)
{
	char *bytes = NULL;
	size_t i, bytes_len = 0, left = queue->count - count;

	if (left == 0) {
		queue->count = 0;
		queue->bytes_len = 0;
		return;
	}
	memmove(queue->records, queue->records + count, left * sizeof(*queue->records));
	queue->count = left;
	for (i = 0; i < left; i++)
		bytes_len += queue->records[i].event.path_len;
	/* Few are left as a rule, so their paths are copied; without memory they stay where they
	 * are. */
	bytes = malloc(bytes_len + 1);
	if (!bytes)
		return;
	bytes_len = 0;
	for (i = 0; i < left; i++) {
		struct mt_krecord *record = &queue->records[i];

		if (record->event.path_len)
			memcpy(bytes + bytes_len, queue->bytes + record->path_at,
			       record->event.path_len);
		record->path_at = bytes_len;
		bytes_len += record->event.path_len;
	}
	free(queue->bytes);
	queue->bytes = bytes;
	queue->bytes_len = bytes_len;
	queue->bytes_capacity = bytes_len + 1;
}

struct mt_kev mt_kqueue_event(const struct mt_kqueue *queue, const struct mt_krecord *record)
{
	struct mt_kev event = record->event;

	event.path = event.path_len ? queue->bytes + record->path_at : "";
	return event;
}
