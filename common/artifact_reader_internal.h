/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The reader's inside, for artifact_reader.c, which goes through the events, and
 * artifact_open.c, which opens, closes and gathers metadata.
 *
 * Thread rule: as artifact_reader.h says.
 */
#ifndef MT_COMMON_ARTIFACT_READER_INTERNAL_H
#define MT_COMMON_ARTIFACT_READER_INTERNAL_H

#include <zstd.h>

#include "common/artifact_meta.h"
#include "common/artifact_reader.h"
#include "common/artifact_source.h"
#include "common/buf.h"
#include "common/frame_crew.h"
#include "common/frame_dec.h"
#include "common/hint_walk.h"

/* Read at once by who looks for few frames: a hint and what follows it. */
#define MT_READER_HOP_READ 256u

enum mt_reader_state {
	BETWEEN,  /* at the head of a frame, or at the end of the file */
	IN_FRAME, /* a data frame is being decompressed */
	FAILED,	  /* next() gave an error; only skip_damaged() leads out */
	AT_END,
};

struct mt_artifact_reader {
	struct mt_artifact_source src;
	ZSTD_DCtx *dctx;
	struct mt_frame_dec *dec;
	enum mt_reader_state state;
	uint64_t at; /* BETWEEN: the next frame */
	struct mt_frame_extent frame;
	uint64_t input_at;     /* next byte to decompress */
	bool input_done;       /* the frame's content is complete, or the file is at its end */
	struct mt_buf content; /* decompressed, from content_at on not yet decoded */
	size_t content_at;
	uint64_t in_frame; /* events of the frame that were decoded */
	struct mt_hint_walk hints;
	bool hinted;		   /* the frame being read has a hint, in `hints` */
	struct mt_frame_hint seen; /* what the frame's events say */
	bool unknown_in_frame;
	unsigned int threads; /* of the crew, when there is one */
	struct mt_frame_crew *crew;
	const struct mt_crew_frame *ready; /* the frame being read, decoded by the crew */
	mt_artifact_observer *observer;
	void *observer_data;
	struct mt_artifact_totals totals;
	struct mt_diag diag;
	struct mt_artifact_meta meta;
	uint64_t meta_seen; /* metadata before this offset has been taken */
};

/* Keeps the map in a skippable frame if it is ours. 0 or negative errno of reading. */
int mt_reader_take_meta(struct mt_artifact_reader *r, const struct mt_frame_extent *e);
/* Keeps a hint for the frame behind it. 0 or negative errno of reading. */
int mt_reader_take_hint(struct mt_artifact_reader *r, const struct mt_frame_extent *e);

#endif
