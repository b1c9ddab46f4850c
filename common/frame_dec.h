/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The content of data frames (msgpack) -> events. Takes what any writer may
 * make of the format: keys in any order, keys and types we do not know,
 * integers in any form that fits the field, optional keys absent or nil.
 * Everything else is damage and is said.
 *
 * The bytes are not trusted: no read outside them, memory bounded by the
 * limits of format.h whatever they claim.
 *
 * Thread rule: one thread at a time for each decoder.
 */
#ifndef MT_COMMON_FRAME_DEC_H
#define MT_COMMON_FRAME_DEC_H

#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

struct mt_frame_dec;

/*
 * What one call gave. Paths and the bytes of stacks are where they were in the
 * content; everything else belongs to the decoder and is valid until its next
 * call.
 */
struct mt_decoded {
	struct mt_event *events; /* the caller may change and move them */
	size_t n;
	size_t consumed;       /* bytes of the events, known and unknown */
	uint64_t unknown;      /* events of types that we do not know */
	char unknown_name[32]; /* of the first of those, cleaned; empty if there were none */
	const char *why;       /* for -EBADMSG: what is wrong with the event at `consumed` */
};

/* NULL: out of memory. */
struct mt_frame_dec *mt_frame_dec_new(void);
/* The same for batches that will be large: in huge pages, where there are any. */
struct mt_frame_dec *mt_frame_dec_new_large(void);
void mt_frame_dec_free(struct mt_frame_dec *dec);

/*
 * Decodes from the head of content[0, len), which has to be the head of an
 * event: up to MT_BATCH_EVENTS of them, fewer when they are large. Whatever it
 * returns, *ret is filled with the events before the place where it stopped.
 *
 *   0         it stopped between two events; call again from `consumed` on
 *             unless that is the end
 *   -EAGAIN   the content ends inside the event at `consumed`
 *   -EBADMSG  the event at `consumed` is damaged
 *   -ENOMEM
 */
int mt_frame_dec_run(struct mt_frame_dec *dec, const uint8_t *content, size_t len,
		     struct mt_decoded *ret);

#endif
