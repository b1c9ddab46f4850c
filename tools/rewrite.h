/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A new artifact made out of another one: its file, frames copied as they are,
 * and frames made anew with the hint in front.
 *
 * Frames keep their numbers, which metadata names: for a frame that is left out
 * an empty one is written. Or small ones are joined, and others have to say where
 * their events went.
 *
 * Threads: one.
 */
#ifndef MT_TOOLS_REWRITE_H
#define MT_TOOLS_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/artifact_writer.h"
#include "common/buf.h"
#include "common/frame_dec.h"
#include "common/frame_hint.h"
#include "tools/input.h"
#include "tools/new_file.h"

/* What makes frames. */
enum mt_rewrite_codec { MT_REWRITE_FUSED, MT_REWRITE_ZSTD };

struct mt_frame_fused;
struct mt_frame_enc;

struct mt_rewrite {
	struct mt_input *input;
	const char *name; /* of the new file */
	struct mt_new_file file;
	struct mt_artifact_writer writer;
	enum mt_rewrite_codec codec;
	int level;
	struct mt_frame_fused *fused;
	struct mt_frame_enc *enc;
	uint64_t frames;	  /* data frames written */
	uint64_t events;	  /* in them */
	uint64_t copied_as_bytes; /* of them, frames of content that our serializer makes otherwise
				   */
	/* What joins the next frame, not yet written. */
	struct mt_buf pending;
	size_t pending_events;
	size_t pending_memory; /* that its events point to, once decoded */
	struct mt_frame_dec *dec;
	int error; /* the first one */
};

/*
 * Begins the file of that name, which must not be the input's; an existing one is
 * an error unless `force`, and stays as it is until close(). Returns 0 or
 * MT_EXIT_FAILED, said.
 */
int mt_rewrite_open(struct mt_rewrite *rw, struct mt_input *input, const char *name, bool force);
/* Puts the file in its place, or lets go of it unless `keep`. Returns 0 or MT_EXIT_FAILED, said. */
int mt_rewrite_close(struct mt_rewrite *rw, bool keep);
/* Where what else is to be said goes: not into the new file. */
FILE *mt_rewrite_report(const struct mt_rewrite *rw);

/* All of these: 0 or a negative errno, which sticks in rw->error. */

/* Bytes of the input, from `start` to `end`: whole frames. */
int mt_rewrite_copy(struct mt_rewrite *rw, uint64_t start, uint64_t end);
/* The hint for a data frame that is copied next, from `start` of the input. */
int mt_rewrite_hint_copied(struct mt_rewrite *rw, const struct mt_frame_hint *hint, uint64_t start);
/* Empty data frames until so many have been written. */
int mt_rewrite_fill(struct mt_rewrite *rw, uint64_t frames);
/*
 * A batch as one data frame, whose content is what it was: of content that our
 * serializer would make otherwise, the bytes are compressed as they are.
 */
int mt_rewrite_batch(struct mt_rewrite *rw, const struct mt_artifact_batch *batch);
/*
 * The same, but a small batch is kept back, and written in one frame with those behind it. The
 * batch's first event will be the one at *ret_index of frame *ret_frame.
 */
int mt_rewrite_join(struct mt_rewrite *rw, const struct mt_artifact_batch *batch,
		    uint64_t *ret_frame, uint64_t *ret_index);
/* Writes what was kept back. To be called before anything else is written. */
int mt_rewrite_flush(struct mt_rewrite *rw);
/* A whole metadata frame. */
int mt_rewrite_meta(struct mt_rewrite *rw, const uint8_t *frame, size_t len);

#endif
