// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/encoder.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu/wfcqueue.h>

#include "common/artifact_writer.h"
#include "common/atomic.h"
#include "common/clock.h"
#include "common/crc32c.h"
#include "common/frame_enc.h"
#include "common/frame_fused.h"
#include "common/frame_hint.h"
#include "sidecar/patience.h"

/*
 * A frame that is ready, or a batch that failed, at its place in the order. The ring has a place
 * for each batch that can be in flight, so a sequence number maps to one place and never waits for
 * it.
 */
struct place {
	bool ready;
	struct mt_batch *batch;
	uint8_t *frame; /* grows, stays with the place */
	size_t frame_size, frame_bytes;
	int error;
};

struct mt_encoder {
	struct mt_encoder_options options;
	struct mt_artifact_writer *writer;

	/* merge -> workers, and back. The queues never block the merge; the semaphores count them.
	 */
	struct cds_wfcq_head submitted_head;
	struct cds_wfcq_tail submitted_tail;
	struct cds_wfcq_head empty_head;
	struct cds_wfcq_tail empty_tail;
	sem_t submitted, empty;
	unsigned created;	/* batches that exist; the merge's */
	uint64_t next_sequence; /* written by the merge, read by who writes */
	uint64_t taken_seen;	/* mt_encoder_moves(): what the output had taken */

	uint32_t making;    /* workers that make a frame now */
	uint64_t came_back; /* batches that were written, or lost */
	uint64_t batch_ns;  /* see struct mt_encoder_load */
	uint64_t since_ns;  /* likewise */

	/* Under lock: the order of writing and what was counted. */
	pthread_mutex_t lock;
	struct place *places;
	uint64_t write_next;
	uint64_t back_ns; /* when a batch came back and all workers had work; 0: they had not */
	bool writing;
	struct mt_encoder_stats stats;

	uint32_t stopping;
	pthread_t *threads;
	unsigned threads_started;
};

/* What makes frames: one of the two, by the option. */
struct frame_maker {
	struct mt_frame_fused *fused;
	struct mt_frame_enc *enc;
};

static int maker_init(struct frame_maker *maker, const struct mt_encoder_options *options)
{
	*maker = (struct frame_maker){ 0 };
	if (options->codec == MT_CODEC_FUSED)
		return mt_frame_fused_new(options->level, &maker->fused);
	return mt_frame_enc_new(options->level, &maker->enc);
}

static void maker_fini(struct frame_maker *maker)
{
	mt_frame_fused_free(maker->fused);
	mt_frame_enc_free(maker->enc);
}

static int make_frame(struct frame_maker *maker, const struct mt_event *events, size_t n,
		      const uint8_t **ret_frame, size_t *ret_bytes)
{
	int error;

	/* A frame that needed no memory does not say that there is some. */
	do {
		error = maker->fused
				? mt_frame_fused_frame(maker->fused, events, n, ret_frame,
						       ret_bytes)
				: mt_frame_enc_frame(maker->enc, events, n, ret_frame, ret_bytes);
	} while (error == -ENOMEM && mt_patience(false));
	return error;
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) && errno == EINTR)
		;
}

static struct mt_batch *dequeue(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail)
{
	struct cds_wfcq_node *node = cds_wfcq_dequeue_blocking(head, tail);

	return node ? caa_container_of(node, struct mt_batch, node) : NULL;
}

static void enqueue(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail, struct mt_batch *batch)
{
	cds_wfcq_node_init(&batch->node);
	cds_wfcq_enqueue(head, tail, &batch->node);
}

static void give_back(struct mt_encoder *encoder, struct mt_batch *batch)
{
	mt_batch_reset(batch);
	enqueue(&encoder->empty_head, &encoder->empty_tail, batch);
	sem_post(&encoder->empty);
}

static struct place *place_of(struct mt_encoder *encoder, uint64_t sequence)
{
	return &encoder->places[sequence % encoder->options.in_flight];
}

/* Writes one frame without the lock (only one thread does, see write_ready). Returns 0 or an errno.
 */
static int write_frame(struct mt_encoder *encoder, const struct place *place)
{
	if (place->error)
		return place->error;
	return -mt_artifact_writer_append(encoder->writer, place->frame, place->frame_bytes);
}

/*
 * Called with the lock, when a batch came back: how long one takes is learned while all workers
 * have work. Several come back at once when they had waited for one; the average bears that.
 */
static void learn_pace(struct mt_encoder *encoder)
{
	uint64_t submitted = mt_load_acquire(&encoder->next_sequence);
	uint64_t now_ns = mt_clock_monotonic_ns(), took_ns, batch_ns;

	if (encoder->back_ns) {
		took_ns = now_ns - encoder->back_ns;
		batch_ns = encoder->batch_ns;
		mt_store_relaxed(&encoder->batch_ns,
				 batch_ns ? batch_ns - batch_ns / 8 + took_ns / 8 : took_ns);
	}
	encoder->back_ns = submitted - encoder->write_next >= encoder->options.workers ? now_ns : 0;
	mt_store_relaxed(&encoder->since_ns, now_ns);
	mt_store_release(&encoder->came_back, encoder->write_next);
}

/*
 * Called with the lock: writes all frames that are next in order, by one thread at a time. Who
 * finds another thread at it leaves: that thread sees the new place before it stops, under the same
 * lock.
 */
static void write_ready(struct mt_encoder *encoder)
{
	if (encoder->writing)
		return;
	encoder->writing = true;
	for (;;) {
		struct place *place = place_of(encoder, encoder->write_next);
		struct mt_batch *batch;
		uint64_t count;
		int error = encoder->stats.error;

		if (!place->ready)
			break;
		batch = place->batch;
		count = batch->count;
		if (!error && count) {
			pthread_mutex_unlock(&encoder->lock);
			error = write_frame(encoder, place);
			pthread_mutex_lock(&encoder->lock);
			encoder->stats.error = error;
			if (!error) {
				encoder->stats.frames++;
				encoder->stats.events_written += count;
			}
		}
		if (error)
			encoder->stats.events_lost += count;
		encoder->stats.bytes_written = encoder->writer->bytes;
		place->ready = false;
		place->batch = NULL;
		encoder->write_next++;
		learn_pace(encoder);
		give_back(encoder, batch);
	}
	encoder->writing = false;
}

/*
 * Encodes into the place's own memory, the hint in front of the frame; an error is kept there and
 * told when its turn comes.
 */
static void encode(struct mt_encoder *encoder, struct frame_maker *maker, struct mt_batch *batch)
{
	struct place *place = place_of(encoder, batch->sequence);
	struct mt_frame_hint hint = { 0 };
	const uint8_t *frame = NULL;
	size_t frame_bytes = 0, bytes = 0;
	int error = 0;

	if (batch->count) {
		mt_add_acq_rel(&encoder->making, 1u);
		error = -make_frame(maker, batch->events, batch->count, &frame, &frame_bytes);
		mt_sub_acq_rel(&encoder->making, 1u);
		bytes = MT_CHECKED_HINT_BYTES + frame_bytes;
	}
	if (!error && bytes > place->frame_size) {
		uint8_t *larger = mt_patient_realloc(place->frame, bytes);

		if (larger) {
			place->frame = larger;
			place->frame_size = bytes;
		} else {
			error = ENOMEM;
		}
	}
	if (!error && bytes) {
		hint.frame_len = frame_bytes;
		mt_frame_hint_add(&hint, batch->events, batch->count);
		hint.crc = mt_crc32c(0, frame, frame_bytes);
		mt_frame_hint_write_checked(&hint, place->frame);
		memcpy(place->frame + MT_CHECKED_HINT_BYTES, frame, frame_bytes);
	}
	place->error = error;
	place->frame_bytes = bytes;

	pthread_mutex_lock(&encoder->lock);
	place->batch = batch;
	place->ready = true;
	write_ready(encoder);
	pthread_mutex_unlock(&encoder->lock);
}

struct worker {
	struct mt_encoder *encoder;
	struct frame_maker maker;
};

static void *worker_main(void *argument)
{
	struct worker worker = *(struct worker *)argument;

	free(argument);
	for (;;) {
		struct mt_batch *batch;

		wait_for(&worker.encoder->submitted);
		batch = dequeue(&worker.encoder->submitted_head, &worker.encoder->submitted_tail);
		if (batch)
			encode(worker.encoder, &worker.maker, batch);
		else if (mt_load_acquire(&worker.encoder->stopping))
			break;
	}
	maker_fini(&worker.maker);
	return NULL;
}

/* Workers take no signals: those are the main thread's. */
static int start_worker(struct mt_encoder *encoder)
{
	struct worker *worker = malloc(sizeof(*worker));
	sigset_t all, old;
	int error;

	if (!worker)
		return -ENOMEM;
	worker->encoder = encoder;
	error = maker_init(&worker->maker, &encoder->options);
	if (error) {
		free(worker);
		return error;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&encoder->threads[encoder->threads_started], NULL, worker_main,
			       worker);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error) {
		maker_fini(&worker->maker);
		free(worker);
		return -error;
	}
	encoder->threads_started++;
	return 0;
}

static void stop_workers(struct mt_encoder *encoder)
{
	mt_store_release(&encoder->stopping, 1);
	for (unsigned i = 0; i < encoder->threads_started; i++)
		sem_post(&encoder->submitted);
	for (unsigned i = 0; i < encoder->threads_started; i++)
		pthread_join(encoder->threads[i], NULL);
	encoder->threads_started = 0;
}

int mt_encoder_new(const struct mt_encoder_options *options, struct mt_artifact_writer *writer,
		   struct mt_encoder **ret_encoder)
{
	struct mt_encoder *encoder;
	int error = 0;

	if (options->workers < 1 || options->in_flight < 2)
		return -EINVAL;
	encoder = calloc(1, sizeof(*encoder));
	if (!encoder)
		return -ENOMEM;
	encoder->options = *options;
	encoder->writer = writer;
	cds_wfcq_init(&encoder->submitted_head, &encoder->submitted_tail);
	cds_wfcq_init(&encoder->empty_head, &encoder->empty_tail);
	sem_init(&encoder->submitted, 0, 0);
	sem_init(&encoder->empty, 0, 0);
	pthread_mutex_init(&encoder->lock, NULL);
	encoder->places = calloc(options->in_flight, sizeof(*encoder->places));
	encoder->threads = calloc(options->workers, sizeof(*encoder->threads));
	if (!encoder->places || !encoder->threads)
		error = -ENOMEM;
	for (unsigned i = 0; i < options->workers && !error; i++)
		error = start_worker(encoder);
	if (error) {
		mt_encoder_free(encoder);
		return error;
	}
	*ret_encoder = encoder;
	return 0;
}

/* Returns whether an empty batch may be dequeued; timeout_ms below 0: waits as long as it takes. */
static bool wait_for_empty(struct mt_encoder *encoder, int timeout_ms)
{
	struct timespec until;

	if (timeout_ms < 0) {
		wait_for(&encoder->empty);
		return true;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)timeout_ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (sem_clockwait(&encoder->empty, CLOCK_MONOTONIC, &until))
		if (errno != EINTR)
			return false;
	return true;
}

static struct mt_batch *take(struct mt_encoder *encoder, int timeout_ms)
{
	if (sem_trywait(&encoder->empty)) {
		struct mt_batch *batch = NULL;

		if (encoder->created < encoder->options.in_flight)
			batch = mt_batch_new();
		if (batch) {
			encoder->created++;
			return batch;
		}
		if (!encoder->created || !wait_for_empty(encoder, timeout_ms))
			return NULL;
	}
	return dequeue(&encoder->empty_head, &encoder->empty_tail);
}

struct mt_batch *mt_encoder_take(struct mt_encoder *encoder)
{
	return take(encoder, -1);
}

struct mt_batch *mt_encoder_take_within(struct mt_encoder *encoder, unsigned timeout_ms)
{
	return take(encoder, (int)timeout_ms);
}

void mt_encoder_submit(struct mt_encoder *encoder, struct mt_batch *batch)
{
	/* An empty batch has no place in the order: numbers are those of data frames. */
	if (!batch->count) {
		give_back(encoder, batch);
		return;
	}
	batch->sequence = encoder->next_sequence;
	if (batch->sequence == mt_load_acquire(&encoder->came_back))
		mt_store_relaxed(&encoder->since_ns, mt_clock_monotonic_ns());
	mt_store_release(&encoder->next_sequence, batch->sequence + 1);
	enqueue(&encoder->submitted_head, &encoder->submitted_tail, batch);
	sem_post(&encoder->submitted);
}

void mt_encoder_load(struct mt_encoder *encoder, struct mt_encoder_load *ret_load)
{
	*ret_load = (struct mt_encoder_load){
		.workers = encoder->options.workers,
		.in_flight = encoder->options.in_flight,
		.ahead = (unsigned)(encoder->next_sequence - mt_load_acquire(&encoder->came_back)),
		.batch_ns = mt_load_relaxed(&encoder->batch_ns),
		.since_ns = mt_load_relaxed(&encoder->since_ns),
	};
}

bool mt_encoder_moves(struct mt_encoder *encoder)
{
	uint64_t taken = mt_load_relaxed(&encoder->writer->taken);
	bool took = taken != encoder->taken_seen;

	encoder->taken_seen = taken;
	return took || mt_load_acquire(&encoder->making) != 0;
}

void mt_encoder_stats(struct mt_encoder *encoder, struct mt_encoder_stats *ret_stats)
{
	pthread_mutex_lock(&encoder->lock);
	*ret_stats = encoder->stats;
	pthread_mutex_unlock(&encoder->lock);
}

/* A run without events still has one data frame (FORMAT: an empty file is no artifact). */
static void write_empty_frame(struct mt_encoder *encoder)
{
	struct frame_maker maker;
	const uint8_t *frame = NULL;
	size_t frame_bytes = 0;
	int error = maker_init(&maker, &encoder->options);

	if (!error)
		error = make_frame(&maker, NULL, 0, &frame, &frame_bytes);
	if (!error)
		error = mt_artifact_writer_append(encoder->writer, frame, frame_bytes);
	if (error)
		encoder->stats.error = -error;
	else
		encoder->stats.frames = 1;
	encoder->stats.bytes_written = encoder->writer->bytes;
	maker_fini(&maker);
}

void mt_encoder_stop(struct mt_encoder *encoder, struct mt_encoder_stats *ret_stats)
{
	stop_workers(encoder);
	if (!encoder->next_sequence && !encoder->stats.error)
		write_empty_frame(encoder);
	*ret_stats = encoder->stats;
}

void mt_encoder_free(struct mt_encoder *encoder)
{
	struct mt_batch *batch;

	if (!encoder)
		return;
	stop_workers(encoder);
	while ((batch = dequeue(&encoder->empty_head, &encoder->empty_tail)))
		mt_batch_free(batch);
	for (unsigned i = 0; encoder->places && i < encoder->options.in_flight; i++)
		free(encoder->places[i].frame);
	cds_wfcq_destroy(&encoder->submitted_head, &encoder->submitted_tail);
	cds_wfcq_destroy(&encoder->empty_head, &encoder->empty_tail);
	sem_destroy(&encoder->submitted);
	sem_destroy(&encoder->empty);
	pthread_mutex_destroy(&encoder->lock);
	free(encoder->places);
	free(encoder->threads);
	free(encoder);
}
