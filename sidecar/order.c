/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/order.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/pages.h"
#include "sidecar/image.h"
#include "sidecar/order_impl.h"
#include "sidecar/patience.h"
#include "sidecar/pending.h"
#include "sidecar/process.h"

#define SLACK_NS	 UINT64_C(1000000)    /* counters of two cores differ by less */
#define COLLECT_NS	 UINT64_C(1000000000) /* between looks at the lost counters */
#define INBOX_BYTES_MAX	 (UINT64_C(8) << 20)
#define ROUNDS_TO_FREEZE 4 /* of finishing; then nothing new is noted */
#define ROUNDS_TO_FORCE	 16
#define ROUNDS_TO_END	 1024

/*
 * The merge may be long in coming back to its rings when the encoder is behind, and rings that run
 * over lose. What is found now waits in the inbox for the next round: so much of it at most, then
 * the rings may run over, which is counted. Nor do programs wait for the end of the round that wait
 * for a chunk.
 */
static void meanwhile(void *context, bool moves)
{
	struct mt_order *order = context;
	uint64_t now_ns = mt_clock_monotonic_ns();

	if (moves) {
		pthread_mutex_lock(&order->intake_lock);
		order->moved_ns = now_ns;
		pthread_mutex_unlock(&order->intake_lock);
	}
	if (order->merging && order->options.drain && order->inbox_bytes < INBOX_BYTES_MAX)
		(void)order->options.drain(order->options.drain_context); /* it reports itself */
	for (struct mt_image *image = order->images; image; image = image->next)
		mt_consumer_tend(&image->consumer, now_ns, moves);
}

int mt_order_new(const struct mt_order_options *options, struct mt_order **ret_order)
{
	struct mt_order *order = calloc(1, sizeof(*order));
	int ret;

	if (!order)
		return -ENOMEM;
	order->options = *options;
	order->budget.max_bytes = options->max_liveness_bytes;
	order->kernel_tail = &order->kernel_head;
	order->inbox_tail = &order->inbox;
	ret = mt_sink_init(&order->sink, options->encoder, options->counter);
	if (ret < 0) {
		free(order);
		return ret;
	}
	order->sink.meanwhile = meanwhile;
	order->sink.meanwhile_context = order;
	mt_repair_init(&order->repair, &order->sink);
	pthread_mutex_init(&order->intake_lock, NULL);
	*ret_order = order;
	return 0;
}

void mt_order_free(struct mt_order *order)
{
	struct mt_space *space;

	if (!order)
		return;
	mt_pending_free(order); /* its events point to images */
	mt_drain_free(order);
	mt_processes_free(order);
	while ((space = order->orphans) != NULL) {
		order->orphans = space->next;
		mt_space_end(&order->repair, space);
	}
	mt_merge_fini(&order->merge);
	mt_repair_fini(&order->repair);
	mt_sink_fini(&order->sink);
	pthread_mutex_destroy(&order->intake_lock);
	free(order);
}

/* Whoever is told of it later may find the process gone. */
static char *path_of(pid_t pid)
{
	char link[32], path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	len = readlink(link, path, sizeof(path));
	return len > 0 ? strndup(path, (size_t)len) : NULL;
}

int mt_order_add_image(struct mt_order *order, const struct mt_shm *shm, pid_t pid,
		       const struct mt_hello *hello)
{
	struct mt_image *image = mt_patient_calloc(1, sizeof(*image));
	int ret;

	if (!image)
		return -ENOMEM;
	do {
		image->binds = mt_pages_new(mt_image_binds_bytes(shm));
	} while (mt_patience(image->binds != NULL));
	do {
		ret = image->binds ? mt_consumer_init(&image->consumer, shm) : -ENOMEM;
	} while (mt_patience(ret != -ENOMEM));
	if (ret < 0) {
		mt_pages_free(image->binds, mt_image_binds_bytes(shm));
		free(image);
		return ret;
	}
	mt_consumer_look_at(&image->consumer, MT_UNATTACHED_SLOTS);
	image->pid = pid;
	image->hello_ns = hello->time_ns;
	image->path = path_of(pid);
	image->root = (hello->flags & MT_HELLO_ROOT) != 0;
	image->past_us_told = (hello->flags & MT_HELLO_BYPASSED) != 0; /* it is listed */
	image->nested = hello->pid != pid;
	pthread_mutex_lock(&order->intake_lock);
	image->next = order->intake;
	order->intake = image;
	order->intake_count++;
	pthread_mutex_unlock(&order->intake_lock);
	return 0;
}

bool mt_order_has_room(struct mt_order *order, uint64_t *ret_moved_ns)
{
	bool has_room;

	pthread_mutex_lock(&order->intake_lock);
	has_room = order->intake_count < MT_ORDER_INTAKE_MAX;
	*ret_moved_ns = order->moved_ns;
	pthread_mutex_unlock(&order->intake_lock);
	return has_room;
}

void mt_order_kernel_event(struct mt_order *order, const struct mt_kev *event)
{
	uint64_t now = mt_clock_read(order->options.counter), stamp;

	if (event->type == MT_KEV_LOST) {
		order->sink.stats.kernel_lost += event->lost;
		order->kernel_lossy = true;
		return;
	}
	if (event->ns_pid != 0 && event->ns_pid != event->pid)
		order->nested = true;
	if (event->type == MT_KEV_FORK && event->ns_pid == 0 &&
	    !(event->exec_flags & MT_EXEC_GUESSED))
		order->lacks_numbers = true;
	stamp = mt_clock_counter_at(&order->sink.clock, event->time_ns);
	if (order->merging)
		mt_pending_add_later(order, event, stamp < now ? stamp : now);
	else
		mt_pending_add(order, event, stamp < now ? stamp : now, NULL);
}

void mt_order_process_ended(struct mt_order *order, pid_t pid, int status, bool status_known)
{
	struct mt_process *process;

	if (!order->options.kernel_events) {
		mt_pending_ask_exit(order, pid, status, status_known);
		return;
	}
	process = mt_process_find(order, pid);
	if (process && status_known) {
		mt_process_record(order, process)->exit_status = status;
		mt_process_record(order, process)->status_known = true;
	}
}

/* Streams that came to be read after their process's memory was let go get memory of their own. */
static bool has_space(struct mt_order *order, struct mt_reader *reader)
{
	struct mt_bind *bind = reader->bind;
	struct mt_space *space;

	if (!reader->origin.space && !bind->ended)
		reader->origin.space = mt_process_space(order, bind->process);
	if (reader->origin.space || !bind->ended)
		return reader->origin.space != NULL;
	space = mt_space_new(&order->budget);
	if (!space)
		return false;
	space->next = order->orphans;
	order->orphans = space;
	reader->origin.space = space;
	return true;
}

void mt_order_admit(struct mt_order *order, struct mt_reader *reader)
{
	/* Nothing of a process stands behind its Exit. */
	if (reader->bind->process->exited) {
		mt_reader_give_up(order, reader);
		return;
	}
	/* Without memory the reader waits for the next round, in which it is admitted again. */
	if (!has_space(order, reader) || !mt_merge_reserve(&order->merge, order->merge.count + 2))
		return;
	if (reader->stream.read == reader->stream.end)
		mt_stream_advance(&reader->bind->image->consumer, &reader->stream);
	mt_merge_push(&order->merge,
		      (struct mt_merge_head){ mt_stream_peek(&reader->stream).stamp, reader });
}

/* The stream broke the rules: what is left of it is not read. */
static void stop_stream(struct mt_order *order, struct mt_reader *reader)
{
	order->sink.stats.corrupt_streams++;
	reader->stream.stopped = true;
	reader->stream.seen = reader->stream.taken;
	reader->stream.covered = reader->stream.taken;
}

/*
 * Takes records of one reader for as long as they are covered and not above `runner_up`. Stops
 * behind a FORK_DONE, which it leaves in ret_rec: what follows from it may change the merge.
 * Returns true for that.
 */
static bool take_run(struct mt_order *order, struct mt_reader *reader, uint64_t runner_up,
		     struct mt_rec *ret_rec)
{
	struct mt_stream *stream = &reader->stream;
	struct mt_repair *repair = &order->repair;
	uint64_t now_counter = order->now_counter;

	while (stream->taken < stream->covered) {
		const struct mt_rec *first, *end;
		struct mt_rec rec;
		unsigned kind;

		if (stream->read == stream->end)
			mt_stream_advance(&reader->bind->image->consumer, stream);
		first = stream->read;
		end = stream->end;
		if ((uint64_t)(end - first) > stream->covered - stream->taken)
			end = first + (stream->covered - stream->taken);
		for (; stream->read < end; stream->read++) {
			rec = mt_stream_peek(stream);
			if (rec.stamp > runner_up)
				break;
			kind = (unsigned)(rec.size_kind & 0xff);
			if (__builtin_expect(rec.stamp > now_counter || kind == MT_REC_NONE ||
						     kind >= MT_REC_KINDS,
					     0)) {
				stop_stream(order, reader);
				order->sink.stats.records += (uint64_t)(stream->read - first);
				return false;
			}
			if (__builtin_expect(rec.stamp > repair->shelf.deadline, 0))
				mt_repair_expire(repair, rec.stamp);
			if (__builtin_expect(kind == MT_REC_FORK_DONE, 0)) {
				stream->read++;
				break;
			}
			mt_repair_apply(repair, &reader->origin, &rec);
		}
		order->sink.stats.records += (uint64_t)(stream->read - first);
		stream->taken += (uint64_t)(stream->read - first);
		if (stream->read < end || rec.stamp > runner_up) {
			*ret_rec = rec;
			return rec.stamp <= runner_up;
		}
		if ((rec.size_kind & 0xff) == MT_REC_FORK_DONE) {
			*ret_rec = rec;
			return true;
		}
	}
	return false;
}

/* Puts the head of the kernel's queue into the merge; should it be there already, it does no harm.
 */
static void push_kernel(struct mt_order *order)
{
	if (order->kernel_head && mt_merge_reserve(&order->merge, order->merge.count + 1))
		mt_merge_push(&order->merge,
			      (struct mt_merge_head){ order->kernel_head->stamp, NULL });
}

/* The reader at the top of the merge: takes a run and puts its next head in its place. */
static void merge_reader(struct mt_order *order, struct mt_reader *reader)
{
	struct mt_merge *merge = &order->merge;
	struct mt_order_process *record = mt_process_record(order, reader->bind->process);
	uint64_t before = mt_sink_events(&order->sink);
	struct mt_rec rec;
	bool fork_done;

	if (record->events == 0)
		record->first_ns = mt_clock_ns(&order->sink.clock, merge->heads[0].stamp);
	fork_done = take_run(order, reader, mt_merge_runner_up(merge), &rec);
	if (mt_sink_events(&order->sink) != before) {
		record->events += mt_sink_events(&order->sink) - before;
		record->last_ns = order->sink.last_ns;
	}
	if (mt_reader_drained(reader)) {
		mt_merge_pop(merge);
	} else {
		if (reader->stream.read == reader->stream.end)
			mt_stream_advance(&reader->bind->image->consumer, &reader->stream);
		mt_merge_replace(merge, (struct mt_merge_head){
						mt_stream_peek(&reader->stream).stamp, reader });
	}
	if (fork_done) {
		mt_fork_done(order, reader, &rec);
		push_kernel(order); /* children of the child may have been asked for */
	}
}

/*
 * The kernel's queue at the top of the merge. Returns false when its head is not covered: it was
 * drained in this round, and what came before it may not be visible yet.
 */
static bool merge_kernel(struct mt_order *order)
{
	struct mt_merge *merge = &order->merge;
	uint64_t stamp = merge->heads[0].stamp;

	if (order->kernel_head && order->kernel_head->stamp > stamp) {
		mt_merge_replace(merge, (struct mt_merge_head){ order->kernel_head->stamp, NULL });
		return true;
	}
	if (order->kernel_head && order->kernel_head->round >= order->round && !order->frozen)
		return false;
	mt_merge_pop(merge);
	if (!order->kernel_head)
		return true;
	if (mt_pending_apply(order))
		push_kernel(order);
	return true;
}

static bool kernel_is_covered(const struct mt_order *order)
{
	return order->kernel_head && (order->kernel_head->round < order->round || order->frozen);
}

static void merge_all(struct mt_order *order)
{
	struct mt_merge *merge = &order->merge;

	push_kernel(order);
	for (;;) {
		struct mt_reader *reader;
		bool go_on;

		if (merge->count > 0) {
			reader = merge->heads[0].reader;
			go_on = true;
			if (!reader)
				go_on = merge_kernel(order);
			else if (reader->stream.taken < reader->stream.covered)
				merge_reader(order, reader);
			else
				go_on = false;
			if (go_on)
				continue;
		}
		/* A head that waited for streams may find them drained by now. */
		if (order->kernel_blocked_ns == 0 || !kernel_is_covered(order) ||
		    !mt_pending_apply(order))
			return;
		push_kernel(order);
	}
}

size_t mt_order_round(struct mt_order *order)
{
	uint64_t before = mt_sink_events(&order->sink);

	order->round++;
	order->now_ns = mt_clock_monotonic_ns();
	order->repair.shelf.now_ns = order->now_ns;
	mt_images_take_in(order);
	order->merge.count = 0;
	mt_drain_note(order);
	mt_pending_take_inbox(order);
	if (order->options.drain)
		(void)order->options.drain(order->options.drain_context); /* it reports itself */
	mt_clock_sample(&order->sink.clock);
	order->now_counter = mt_clock_read(order->options.counter) +
			     mt_clock_ticks(&order->sink.clock, SLACK_NS);
	order->repair.shelf.window_ticks = mt_clock_ticks(&order->sink.clock, MT_PARK_NS);
	mt_gates_check(order);
	order->merging = true;
	merge_all(order);
	order->merging = false;
	/*
	 * A round without events is not idle yet: a late record may have stopped it in front of the
	 * very one that is waited for. When all that is visible was taken, that one cannot come.
	 */
	if (order->merge.count == 0)
		mt_repair_expire_idle(&order->repair, order->now_ns - MT_PARK_IDLE_NS);
	mt_drain_settle(order);
	mt_processes_check(order);
	if (order->now_ns - order->collected_ns >= COLLECT_NS) {
		order->collected_ns = order->now_ns;
		mt_drain_collect_lost(order);
	}
	mt_sink_flush_old(&order->sink, order->now_ns, order->options.flush_ns);
	return (size_t)(mt_sink_events(&order->sink) - before);
}

bool mt_order_process_done(const struct mt_order *order, pid_t pid)
{
	const struct mt_process *process = mt_process_find(order, pid);

	return process && process->exited;
}

void mt_order_close_segments(struct mt_order *order)
{
	mt_images_take_in(order);
	for (struct mt_image *image = order->images; image; image = image->next)
		mt_consumer_close(&image->consumer);
}

static bool has_work(const struct mt_order *order)
{
	if (order->kernel_head || order->inbox || order->waiting)
		return true;
	for (const struct mt_image *image = order->images; image; image = image->next)
		for (uint32_t i = 0; i < image->reader_count; i++)
			if (!mt_reader_drained(image->readers[i]))
				return true;
	return false;
}

/* Whose gate did not open: what they hold is there, only nobody knows whose it is. */
static void lose_waiting(struct mt_order *order)
{
	struct mt_bind **at = &order->waiting, *bind;

	while ((bind = *at) != NULL) {
		if (bind->root) { /* there was no memory for its Exec */
			at = &bind->next;
			continue;
		}
		*at = bind->next;
		mt_bind_lose(order, bind);
	}
}

static void end_reader(struct mt_order *order, struct mt_reader *reader)
{
	/* All else was taken or given up: for this one there was no memory. */
	if (!mt_reader_drained(reader))
		order->sink.stats.unread_streams++;
	mt_origin_end(&order->repair, &reader->origin);
}

void mt_order_finish(struct mt_order *order)
{
	order->finishing = true;
	for (int i = 0; i < ROUNDS_TO_END; i++) {
		order->frozen = i >= ROUNDS_TO_FREEZE;
		order->forcing = i >= ROUNDS_TO_FORCE;
		if (mt_order_round(order) == 0 && i > ROUNDS_TO_FREEZE && !has_work(order))
			break;
	}
	mt_repair_expire_all(&order->repair);
	lose_waiting(order);
	for (struct mt_image *image = order->images; image; image = image->next)
		for (uint32_t i = 0; i < image->reader_count; i++)
			end_reader(order, image->readers[i]);
	mt_drain_collect_lost(order);
	mt_sink_flush(&order->sink);
}

void mt_order_stats(const struct mt_order *order, struct mt_order_stats *ret_stats)
{
	*ret_stats = order->sink.stats;
	ret_stats->events = mt_sink_events(&order->sink);
}

size_t mt_order_processes(const struct mt_order *order, const struct mt_order_process **ret_list)
{
	*ret_list = order->records;
	return order->record_count;
}

size_t mt_order_anomalies(const struct mt_order *order, const struct mt_order_anomaly **ret_list)
{
	*ret_list = order->sink.anomalies;
	return order->sink.anomaly_count;
}
