/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The decoder's inside: the general path, which takes whatever the format
 * allows, and the memory that a batch's events point to. For frame_dec.c and
 * event_search.c.
 *
 * Thread rule: as frame_dec.h says.
 */
#ifndef MT_COMMON_FRAME_DEC_GENERAL_H
#define MT_COMMON_FRAME_DEC_GENERAL_H

#include <stddef.h>

#include "common/event.h"
#include "common/frame_dec.h"
#include "common/msgpack_cursor.h"

struct mt_frame_arena;

struct mt_frame_dec {
	struct mt_frame_arena *arena; /* newest first; the last one is kept between batches */
	size_t arena_used;
	struct mt_event events[MT_BATCH_EVENTS];
};

/* Frees what the last batch's events pointed to. */
void mt_frame_dec_reset(struct mt_frame_dec *dec);

/*
 * One event from the cursor on. 0, with type MT_EVENT_NONE in *ret_event for an
 * event of an unknown type, which is noted in *decoded; or an error as
 * mt_frame_dec_run() gives it, with decoded->why for -EBADMSG.
 */
int mt_frame_dec_general(struct mt_frame_dec *dec, struct mt_mp_cursor *cursor,
			 struct mt_event *ret_event, struct mt_decoded *decoded);

#endif
