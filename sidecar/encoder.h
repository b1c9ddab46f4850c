/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Batches -> frames made in parallel -> written in the order of submission.
 *
 *   merge --submit--> [bounded queue] --> N workers (serialise, compress)
 *                                             |  done, by sequence number
 *                                         the writer: whoever holds the next number writes it
 *
 * At most `in_flight` batches exist; mt_encoder_take() waits for an empty one, which is the
 * back-pressure that reaches the merge and, through full chunks, the program. After a write error
 * (disk full, file size limit, dead pipe) batches are taken and counted as lost, so that the
 * program goes on.
 *
 * Two things can be asked of it by who waits: how far it is behind (mt_encoder_load(), which paces
 * the merge), and whether it moves at all (mt_encoder_moves()). It moves while a worker makes a
 * frame, however long that takes, and while the output takes bytes. An output that takes none (a
 * terminal that nobody reads, a server that is gone, a frozen file system) stands still: nothing in
 * the program's reach will end that, so the promise to wait for a sidecar that makes progress does
 * not hold for it.
 *
 * Threads: take, submit, load, moves and flush by one thread (the merge); stop by the owner after
 * it.
 */
#ifndef MT_SIDECAR_ENCODER_H
#define MT_SIDECAR_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sidecar/batch.h"

struct mt_encoder;
struct mt_artifact_writer;

/* How frames are made: the bytes in them are the same. */
enum mt_codec {
	MT_CODEC_FUSED, /* common/frame_fused.h */
	MT_CODEC_ZSTD,	/* common/frame_enc.h */
};

struct mt_encoder_options {
	enum mt_codec codec;
	unsigned workers;   /* at least 1 */
	unsigned in_flight; /* batches that exist at most; at least 2 */
	int level;	    /* zstd level */
};

struct mt_encoder_stats {
	uint64_t events_written;
	uint64_t events_lost; /* submitted after, or in, the write that failed */
	uint64_t frames;
	uint64_t bytes_written;
	int error; /* 0, or the errno of the first failed write; EFBIG: the file's limit was reached
		    */
};

/* How far it is behind. */
struct mt_encoder_load {
	unsigned workers, in_flight; /* the options */
	unsigned ahead;	   /* batches that were submitted and did not come back: they are encoded,
			      or wait for that, or for their turn to be written */
	uint64_t batch_ns; /* between two that came back, lately, while all workers had work; 0: was
			      not seen yet */
	uint64_t since_ns; /* when the last one came back, or the encoder began to have work */
};

/* Starts the workers. The writer stays the caller's and must outlive the encoder. */
int mt_encoder_new(const struct mt_encoder_options *options, struct mt_artifact_writer *writer,
		   struct mt_encoder **ret_encoder);

/* An empty batch; waits until there is one. NULL only when out of memory for the first. */
struct mt_batch *mt_encoder_take(struct mt_encoder *encoder);

/* The same, but waits timeout_ms at most: NULL also when there was none in that time. */
struct mt_batch *mt_encoder_take_within(struct mt_encoder *encoder, unsigned timeout_ms);

/* Passes a batch on, also an empty one (which makes no frame). */
void mt_encoder_submit(struct mt_encoder *encoder, struct mt_batch *batch);

void mt_encoder_load(struct mt_encoder *encoder, struct mt_encoder_load *ret_load);

/* Is a frame being made, or did the output take anything since the last call? */
bool mt_encoder_moves(struct mt_encoder *encoder);

/* How far it is, now; exact after mt_encoder_stop(). */
void mt_encoder_stats(struct mt_encoder *encoder, struct mt_encoder_stats *ret_stats);

/* Writes all that was submitted, ends the workers. With no event at all writes one empty frame. */
void mt_encoder_stop(struct mt_encoder *encoder, struct mt_encoder_stats *ret_stats);

/* After stop. NULL is accepted. */
void mt_encoder_free(struct mt_encoder *encoder);

#endif
