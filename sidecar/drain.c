/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Images, their process slots (binds) and thread slots (readers): finding them, noting what they
 * published, giving back what is read, and ending them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/pages.h"
#include "sidecar/image.h"
#include "sidecar/order_impl.h"
#include "sidecar/patience.h"
#include "sidecar/pidns.h"
#include "sidecar/process.h"
#include "sidecar/starved.h"

#define PROC_CHECK_NS	 UINT64_C(100000000) /* between looks into /proc for dead threads */
#define STARVED_CHECK_NS UINT64_C(5000000)   /* the same while somebody waits for a chunk */
#define CHECKS_A_LOOK	 4096u		     /* threads; a look then goes on where it ended */
/* Older threads that a new one is compared with. Beyond it the kernel and /proc have to tell who is
 * gone: a program that claims all slots at once must not cost the square of their number. */
#define OLDER_LOOKED_AT 1024u

/*
 * Each slot that waits for its Exec or Fork makes rounds longer, and each Fork that has to be asked
 * for is compared with all of them. So many may wait as one segment has; then the image that has
 * most of them, which no honest one has in so many, is not read any more.
 */
#define BIND_WEIGHT 8u
#define WAITING_MAX (MT_SHM_THREADS_MAX + BIND_WEIGHT * MT_SHM_PROCS_MAX)

static void wait_more(struct mt_order *order, struct mt_image *image, uint64_t weight)
{
	image->waiting += weight;
	order->waiting_weight += weight;
}

void mt_bind_leave_gate(struct mt_order *order, struct mt_bind *bind)
{
	uint64_t weight = BIND_WEIGHT + bind->reader_count;

	bind->image->waiting -= weight;
	order->waiting_weight -= weight;
}

static void refuse_hoarder(struct mt_order *order)
{
	struct mt_bind **at = &order->waiting, *bind;
	struct mt_image *most = order->images;

	for (struct mt_image *image = order->images; image; image = image->next)
		if (image->waiting > most->waiting)
			most = image;
	most->refused = true;
	while ((bind = *at) != NULL) {
		if (bind->image != most) {
			at = &bind->next;
			continue;
		}
		*at = bind->next;
		mt_bind_refuse(order, bind);
	}
}

static bool add_reader(struct mt_image *image, const struct mt_thread_claim *claim)
{
	struct mt_reader *reader;

	if (image->reader_count == image->reader_space) {
		uint32_t space = image->reader_space ? 2 * image->reader_space : 16;
		void *readers = mt_patient_realloc(image->readers, space * sizeof(*image->readers));

		if (!readers)
			return false;
		image->readers = readers;
		image->reader_space = space;
	}
	reader = mt_patient_aligned(64, (sizeof(*reader) + 63) & ~(size_t)63);
	if (!reader)
		return false;
	memset(reader, 0, sizeof(*reader));
	mt_stream_init(&reader->stream, claim->slot);
	reader->tid = claim->tid;
	reader->tcb = claim->tcb;
	reader->claim_stamp = claim->claim_stamp;
	reader->index = image->reader_count;
	image->readers[image->reader_count++] = reader;
	return true;
}

/* tid in our PID namespace of a thread that calls itself `tid`. 0: cannot be told. */
static int32_t translate_tid(struct mt_order *order, const struct mt_bind *bind, int32_t tid)
{
	if (bind->claim.pid == bind->process->pid)
		return tid;
	if (tid == bind->claim.pid)
		return bind->process->pid;
	return mt_pidns_tid(order, bind->process->pid, tid);
}

static void tell_origin(struct mt_order *order, struct mt_reader *reader)
{
	const struct mt_bind *bind = reader->bind;
	int32_t tid = translate_tid(order, bind, reader->tid);

	if (tid == 0) {
		order->sink.stats.untranslated_tids++;
		tid = reader->tid;
	}
	reader->origin.space = bind->process->space;
	reader->origin.pid = bind->process->pid;
	reader->origin.tid = tid;
}

static void stop_reading(struct mt_order *order, struct mt_reader *reader)
{
	struct mt_stream *stream = &reader->stream;

	if (!stream->stopped)
		order->sink.stats.corrupt_streams++;
	stream->stopped = true;
	stream->seen = stream->covered = stream->taken;
}

static void lose_reader(struct mt_order *order, struct mt_reader *reader)
{
	struct mt_stream *stream = &reader->stream;

	(void)mt_stream_note(&reader->bind->image->consumer, stream);
	mt_lost_add(&order->sink.stats.lost[MT_LOST_LATE], stream->seen - stream->taken);
	stream->stopped = true;
	stream->seen = stream->covered = stream->taken;
}

/*
 * Links a new reader to its process slot. Of two threads with one tid or one control block the one
 * that claimed first is gone. That may be the new reader: a scan that finds several claims at once
 * does not find them in the order in which they were made.
 */
static void bind_reader(struct mt_order *order, struct mt_reader *reader, struct mt_bind *bind)
{
	unsigned looked_at = 0;
	bool superseded = false;

	for (struct mt_reader *other = bind->readers; other && looked_at < OLDER_LOOKED_AT;
	     other = other->next, looked_at++) {
		if (other->tid != reader->tid && (!reader->tcb || other->tcb != reader->tcb))
			continue;
		if (other->claim_stamp > reader->claim_stamp)
			superseded = true;
		else
			mt_reader_mark_gone(order, other);
	}
	reader->bind = bind;
	reader->next = bind->readers;
	if (bind->readers)
		bind->readers->previous = reader;
	bind->readers = reader;
	bind->reader_count++;
	if (!bind->process && !bind->refused)
		wait_more(order, bind->image, 1);
	if (bind->nameless)
		lose_reader(order, reader);
	else if (bind->refused)
		stop_reading(order, reader);
	if (bind->process)
		tell_origin(order, reader);
	if (bind->ended || superseded)
		mt_reader_mark_gone(order, reader);
}

/* The threads of a process that there is no memory for are counted, each when it shows. */
static void add_bind(struct mt_order *order, struct mt_image *image,
		     const struct mt_proc_claim *claim)
{
	struct mt_bind *bind = mt_patient_calloc(1, sizeof(*bind));

	if (!bind) {
		image->lacks_binds = true;
		return;
	}
	bind->image = image;
	bind->claim = *claim;
	bind->since_ns = order->now_ns;
	bind->since_round = order->round;
	if (claim->parent == 0 && !image->root_bind) {
		bind->root = true;
		image->root_bind = bind;
	}
	image->binds[claim->slot] = bind;
	image->bind_count++;
	bind->next = order->waiting;
	order->waiting = bind;
	wait_more(order, image, BIND_WEIGHT);
}

static void scan_image(struct mt_order *order, struct mt_image *image)
{
	struct mt_thread_claim thread;
	struct mt_proc_claim proc;
	uint32_t first = image->reader_count, i;

	if (image->attached)
		mt_consumer_look_at(&image->consumer, UINT32_MAX);
	/* Without memory they are found in the next round. */
	(void)mt_consumer_scan_threads(&image->consumer);
	while (mt_consumer_next_thread(&image->consumer, &thread)) {
		if (!add_reader(image, &thread)) {
			order->sink.stats.unread_streams++;
			continue;
		}
		image->readers[image->reader_count - 1]->proc_slot = thread.proc;
	}
	while (!mt_consumer_scan_procs(&image->consumer) && !image->lacks_binds)
		image->lacks_binds = !mt_patience(false);
	while (mt_consumer_next_proc(&image->consumer, &proc))
		add_bind(order, image, &proc);
	for (i = first; i < image->reader_count; i++) {
		struct mt_reader *reader = image->readers[i];
		struct mt_bind *bind = NULL;

		if (reader->proc_slot < image->consumer.shm.layout.proc_count)
			bind = image->binds[reader->proc_slot];
		if (bind) {
			bind_reader(order, reader, bind);
		} else {
			reader->stream.stopped = true;
			if (image->lacks_binds)
				order->sink.stats.unread_streams++;
			else
				order->sink.stats.corrupt_streams++;
		}
	}
}

static void note_image(struct mt_order *order, struct mt_image *image)
{
	for (uint32_t i = 0; i < image->reader_count; i++) {
		struct mt_reader *reader = image->readers[i];

		if (i + 4 < image->reader_count)
			__builtin_prefetch(image->readers[i + 4]);
		if (order->frozen)
			reader->stream.covered = reader->stream.seen;
		else if (mt_stream_note(&image->consumer, &reader->stream) < 0)
			order->sink.stats.corrupt_streams++;
		if (reader->stream.taken < reader->stream.seen && reader->bind &&
		    reader->bind->process)
			mt_order_admit(order, reader);
	}
}

void mt_drain_note(struct mt_order *order)
{
	struct mt_image *image;

	if (!order->frozen)
		for (image = order->images; image; image = image->next) {
			scan_image(order, image);
			if (order->waiting_weight > WAITING_MAX)
				refuse_hoarder(order);
		}
	for (image = order->images; image; image = image->next)
		note_image(order, image);
}

void mt_bind_open(struct mt_order *order, struct mt_bind *bind, struct mt_process *process)
{
	bind->process = process;
	bind->next = process->binds;
	process->binds = bind;
	if (!process->exited)
		(void)mt_process_space(order, process); /* else it is made when its streams come */
	for (struct mt_reader *reader = bind->readers; reader; reader = reader->next) {
		tell_origin(order, reader);
		if (reader->stream.taken < reader->stream.seen)
			mt_order_admit(order, reader);
	}
}

bool mt_reader_drained(const struct mt_reader *reader)
{
	return reader->stream.taken == reader->stream.seen;
}

bool mt_bind_drained(const struct mt_bind *bind)
{
	for (const struct mt_reader *reader = bind->readers; reader; reader = reader->next)
		if (!mt_reader_drained(reader))
			return false;
	return true;
}

void mt_reader_mark_gone(struct mt_order *order, struct mt_reader *reader)
{
	if (reader->gone_round)
		return;
	reader->gone_round = order->round;
	order->gone++;
}

static void refuse(struct mt_order *order, struct mt_bind *bind)
{
	mt_bind_leave_gate(order, bind);
	bind->refused = true;
	bind->image->bind_count--; /* it keeps nothing alive */
}

void mt_bind_refuse(struct mt_order *order, struct mt_bind *bind)
{
	refuse(order, bind);
	for (struct mt_reader *reader = bind->readers; reader; reader = reader->next)
		stop_reading(order, reader);
}

void mt_bind_lose(struct mt_order *order, struct mt_bind *bind)
{
	refuse(order, bind);
	bind->nameless = true;
	for (struct mt_reader *reader = bind->readers; reader; reader = reader->next)
		lose_reader(order, reader);
}

void mt_bind_end(struct mt_order *order, struct mt_bind *bind)
{
	bind->ended = true;
	for (struct mt_reader *reader = bind->readers; reader; reader = reader->next)
		mt_reader_mark_gone(order, reader);
	order->ended_binds++;
}

static void collect(struct mt_order *order, const struct mt_process *process, const uint64_t *now,
		    uint64_t *seen)
{
	/* Whose they are may show yet: they are counted then. */
	if (!process && !order->frozen)
		return;
	for (unsigned i = 0; i < MT_LOST_CAUSES; i++) {
		/* Counters only grow; one that fell was spoiled by its owner. */
		uint64_t more = now[i] > seen[i] ? now[i] - seen[i] : 0;

		if (more == 0)
			continue;
		seen[i] = now[i];
		mt_lost_add(&order->sink.stats.lost[i], more);
		if (process)
			mt_lost_add(&mt_process_record(order, process)->lost[i], more);
	}
}

static void collect_reader(struct mt_order *order, struct mt_image *image, struct mt_reader *reader)
{
	uint64_t lost[MT_LOST_CAUSES] = { 0 };

	mt_consumer_thread_lost(&image->consumer, reader->stream.slot, lost);
	collect(order, reader->bind ? reader->bind->process : NULL, lost, reader->lost);
}

static void collect_bind(struct mt_order *order, struct mt_bind *bind)
{
	uint64_t lost[MT_LOST_CAUSES] = { 0 };

	mt_consumer_proc_lost(&bind->image->consumer, bind->claim.slot, lost);
	collect(order, bind->process, lost, bind->lost);
}

/* Nobody is known to have the segment mapped. */
static bool image_is_over(const struct mt_image *image)
{
	return image->users == 0 && image->bind_count == 0 && image->queued == 0;
}

static void look_past_us(struct mt_order *order, struct mt_image *image)
{
	uint32_t past_us = mt_consumer_past_us(&image->consumer);

	if (past_us == 0 || image->past_us_told)
		return;
	image->past_us_told = true;
	if (order->options.on_past_us)
		order->options.on_past_us(order->options.drain_context, image->pid, image->path,
					  past_us);
}

static void collect_image(struct mt_order *order, struct mt_image *image)
{
	uint64_t lost[MT_LOST_CAUSES] = { 0 };

	if (order->frozen || image_is_over(image)) {
		order->sink.stats.unread_streams += image->consumer.threads.unfound;
		image->consumer.threads.unfound = 0;
	}
	look_past_us(order, image);
	mt_consumer_image_lost(&image->consumer, lost);
	collect(order, image->process, lost, image->lost);
}

void mt_drain_collect_lost(struct mt_order *order)
{
	for (struct mt_image *image = order->images; image; image = image->next) {
		for (uint32_t i = 0; i < image->reader_count; i++)
			collect_reader(order, image, image->readers[i]);
		for (uint32_t i = 0; i < image->consumer.procs.bump; i++)
			if (image->binds[i])
				collect_bind(order, image->binds[i]);
		collect_image(order, image);
	}
}

static void unlink_reader(struct mt_reader *reader)
{
	if (reader->previous)
		reader->previous->next = reader->next;
	else
		reader->bind->readers = reader->next;
	if (reader->next)
		reader->next->previous = reader->previous;
	reader->bind->reader_count--;
}

static void retire_reader(struct mt_order *order, struct mt_image *image, struct mt_reader *reader)
{
	mt_origin_end(&order->repair, &reader->origin);
	collect_reader(order, image, reader);
	mt_consumer_retire_thread(&image->consumer, &reader->stream);
	unlink_reader(reader);
	image->readers[reader->index] = image->readers[--image->reader_count];
	image->readers[reader->index]->index = reader->index;
	free(reader);
	order->gone--;
}

static void retire_gone_readers(struct mt_order *order, struct mt_image *image)
{
	for (uint32_t i = 0; i < image->reader_count;) {
		struct mt_reader *reader = image->readers[i];

		/* Lengths must have been noted after the thread was known to be gone. */
		if (reader->gone_round && reader->gone_round < order->round &&
		    mt_reader_drained(reader) && reader->bind->process)
			retire_reader(order, image, reader);
		else
			i++;
	}
}

static void free_bind(struct mt_image *image, struct mt_bind *bind)
{
	image->binds[bind->claim.slot] = NULL;
	image->bind_count--;
	if (image->root_bind == bind)
		image->root_bind = NULL;
	free(bind);
}

static void retire_ended_binds(struct mt_order *order, struct mt_image *image)
{
	for (uint32_t i = 0; i < image->consumer.procs.bump; i++) {
		struct mt_bind *bind = image->binds[i], **at;

		if (!bind || !bind->ended || bind->readers)
			continue;
		collect_bind(order, bind);
		for (at = &bind->process->binds; *at != bind;)
			at = &(*at)->next;
		*at = bind->next;
		mt_consumer_retire_proc(&image->consumer, i);
		free_bind(image, bind);
		order->ended_binds--;
	}
}

/* Threads that ended without a word (no kernel events, or some were lost). */
static void look_for_dead_threads(struct mt_order *order, struct mt_image *image)
{
	char path[64];

	image->checked_ns = order->now_ns;
	for (uint32_t i = 0; i < image->reader_count && i < CHECKS_A_LOOK; i++) {
		struct mt_reader *reader =
			image->readers[image->checked_at++ % image->reader_count];

		if (reader->gone_round || !reader->bind || !reader->bind->process)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)reader->origin.pid,
			 (int)reader->origin.tid);
		if (access(path, F_OK) != 0 && errno == ENOENT)
			mt_reader_mark_gone(order, reader);
	}
}

/*
 * Threads hold a chunk each for as long as they live, so the pool follows their number. For a burst
 * it grows to four times its first size with `block` (waiting costs little, memory is touched for
 * good) and to the cap with `drop`.
 */
static void grow(struct mt_order *order, struct mt_image *image, uint32_t waiters)
{
	struct mt_consumer *consumer = &image->consumer;
	uint64_t first = consumer->shm.layout.limit, want = 4 * (uint64_t)image->reader_count;
	uint32_t spare = mt_consumer_free_chunks(consumer);

	if (consumer->shm.layout.policy == MT_POLICY_DROP ? spare < consumer->limit / 4
							  : waiters && consumer->limit < 4 * first)
		want = want > consumer->limit ? want : consumer->limit + consumer->limit / 2;
	if (waiters && spare == 0 && want <= consumer->limit)
		want = consumer->limit + MT_CHUNKS_FLOOR;
	if (want <= consumer->limit)
		return;
	mt_image_grant(order, image, want);
	if (consumer->limit < want && consumer->limit < consumer->shm.layout.chunk_count &&
	    waiters) {
		mt_image_reclaim_grants(order, image);
		mt_image_grant(order, image, want);
	}
}

static void settle_image(struct mt_order *order, struct mt_image *image)
{
	struct mt_consumer *consumer = &image->consumer;
	uint32_t waiters = mt_consumer_waiters(consumer);

	grow(order, image, waiters);
	if (consumer->in_lists > consumer->limit / 2 &&
	    order->now_ns - image->checked_ns >= (waiters ? STARVED_CHECK_NS : PROC_CHECK_NS) &&
	    mt_consumer_free_chunks(consumer) < consumer->limit / 2)
		look_for_dead_threads(order, image);
	mt_consumer_settle(consumer, mt_clock_monotonic_ns(),
			   mt_image_is_starved(order, image, waiters));
}

void mt_drain_settle(struct mt_order *order)
{
	struct mt_image **at = &order->images, *image;

	while ((image = *at) != NULL) {
		if (order->gone)
			retire_gone_readers(order, image);
		if (order->ended_binds)
			retire_ended_binds(order, image);
		settle_image(order, image);
		if (!image_is_over(image)) {
			at = &image->next;
			continue;
		}
		/* A child that nobody told of stops recording by itself. */
		mt_consumer_close(&image->consumer);
		collect_image(order, image);
		*at = image->next;
		mt_image_free(order, image);
	}
}

void mt_drain_free(struct mt_order *order)
{
	struct mt_image *image;

	mt_images_take_in(order);
	while ((image = order->images) != NULL) {
		order->images = image->next;
		mt_consumer_close(&image->consumer);
		mt_image_free(order, image);
	}
}
