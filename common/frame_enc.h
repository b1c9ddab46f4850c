/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Events -> one data frame of the artifact. Two steps, so that a writer that
 * goes to zstd blocks directly can take the place of both:
 *
 *   mt_frame_enc_serialize   events -> msgpack, the frame's content
 *   mt_frame_enc_frame       events -> msgpack -> a whole zstd frame
 *
 * The bytes are those that msgpack-c makes, whatever the events: templates are
 * a way to get there faster. The same events give the same bytes every time,
 * in any encoder of the same level.
 *
 * One encoder is reused for all frames of a thread; it keeps its buffers and
 * its zstd context. What a call returns is valid until the next call on the
 * same encoder.
 *
 * The memory is about three times the content of the largest frame. A batch of
 * 65,536 heap events is 4.3 MB of content; what Stack and Mapping records add
 * is up to whoever fills the batch. Content above MT_FRAME_CONTENT_MAX is
 * refused.
 *
 * Thread rule: one thread at a time for each encoder.
 */
#ifndef MT_COMMON_FRAME_ENC_H
#define MT_COMMON_FRAME_ENC_H

#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

#define MT_FRAME_LEVEL_DEFAULT (-1)

struct mt_frame_enc;

/* The zstd levels that can be asked for. */
int mt_frame_level_min(void);
int mt_frame_level_max(void);

/* 0, -EINVAL for a level out of range, or -ENOMEM. */
int mt_frame_enc_new(int level, struct mt_frame_enc **ret_enc);
void mt_frame_enc_free(struct mt_frame_enc *enc);

/*
 * Both: 0; -EINVAL when n is above MT_BATCH_EVENTS or an event is of no type
 * that we know; -EMSGSIZE when the content would be too large; -ENOMEM.
 * n = 0 gives the frame of a run without events.
 */
int mt_frame_enc_serialize(struct mt_frame_enc *enc, const struct mt_event *events, size_t n,
			   const uint8_t **ret_content, size_t *ret_len);
int mt_frame_enc_frame(struct mt_frame_enc *enc, const struct mt_event *events, size_t n,
		       const uint8_t **ret_frame, size_t *ret_len);
/* Bytes of msgpack that the last call made. */
size_t mt_frame_enc_content_len(const struct mt_frame_enc *enc);

#endif
