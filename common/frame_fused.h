/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Events -> one data frame of the artifact, without the msgpack in between:
 * the fused writer. It takes about a third of the time that mt_frame_enc_frame()
 * takes, and makes frames as small. A decoder gets the same content from both,
 * byte for byte; the frames themselves differ.
 *
 * Frames that it is not made for go to mt_frame_enc_frame(): those that hold a
 * Stack, an event above 16 KiB, mostly bytes that did not stand in an earlier
 * event, or one or two events only.
 *
 * The same events give the same frame every time, in any writer of the same
 * level, on any processor.
 *
 * One writer is reused for all frames of a thread; what a call returns is valid
 * until the next call on the same writer. It keeps 1.2 MB, and about as much
 * as its largest frame; with frames for mt_frame_enc_frame(), also what that
 * keeps.
 *
 * Thread rule: one thread at a time for each writer.
 */
#ifndef MT_COMMON_FRAME_FUSED_H
#define MT_COMMON_FRAME_FUSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

struct mt_frame_fused;

/* What a writer did since it was made. */
struct mt_frame_fused_stats {
	uint64_t frames;
	uint64_t frames_handed_on; /* of them, to mt_frame_enc_frame() */
	uint64_t events_slow;	   /* compared byte by byte */
};

/* `level` is for frames handed on. 0, -EINVAL for a level out of range, or -ENOMEM. */
int mt_frame_fused_new(int level, struct mt_frame_fused **ret_fused);
void mt_frame_fused_free(struct mt_frame_fused *fused);

/* Takes and returns what mt_frame_enc_frame() does. */
int mt_frame_fused_frame(struct mt_frame_fused *fused, const struct mt_event *events, size_t n,
			 const uint8_t **ret_frame, size_t *ret_len);

const struct mt_frame_fused_stats *mt_frame_fused_stats(const struct mt_frame_fused *fused);

/*
 * Whether the code for newer processors may be used where it can be (the
 * default). Changes the speed only; for tests and measurements. Returns whether
 * it will be used.
 */
bool mt_frame_fused_allow_cpu(struct mt_frame_fused *fused, bool allow);

#endif
