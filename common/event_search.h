/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds Mapping, Fork and Exec events in the content of a data frame without
 * decoding what stands between them, and counts Exit and Stack events.
 *
 * Each of them has its type's name in it, whatever the order of its keys and
 * the form of its strings. So the content is searched for four bytes of each
 * name, 64 bytes at a time, and where none stands there is no such event. A
 * place that is found is an event if, read backwards from the name, exactly the
 * keys and numbers stand there that a writer puts in front of it, back to the
 * map's first byte, and the event decodes from there on.
 *
 * What else can hold the name of a type:
 * - the path of a Mapping, and the bytes of a Stack, which may be anything, an
 *   encoded event too. So Stacks are searched as well: either event is found
 *   before what is in it, and is stepped over as a whole;
 * - an event in an order of keys that is not the writers', or anything else
 *   that does not validate: the frame is walked.
 *
 * "Walked" means decoded from its start, as everybody else reads it. Left is
 * one way to be misled: a whole encoded event inside a string or bytes under a
 * key, or in an event of a type, that the format does not have. No writer makes
 * that, and whoever reads without the search is not misled.
 *
 * Thread rule: as the decoder's.
 */
#ifndef MT_COMMON_EVENT_SEARCH_H
#define MT_COMMON_EVENT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/frame_dec.h"
#include "common/frame_hint.h"

/*
 * The events of these types in a whole frame's content. 0, or what
 * mt_frame_dec_run() says where the frame was walked (and then *ret is what it
 * gives: events of all types, and perhaps not to the end of the content).
 *
 * With a hint for the frame, its counts of the five types and its times are
 * held against what is found; where they do not agree the frame is walked, so
 * that all of the hint can be held against all events.
 */
int mt_event_search(struct mt_frame_dec *dec, const uint8_t *content, size_t len,
		    const struct mt_frame_hint *hint, struct mt_decoded *ret, bool *ret_walked);

/*
 * The first place from `at` on where one of the four-byte needles stands, or
 * len. For the search itself, and for its tests.
 */
size_t mt_event_search_place(const uint8_t *content, size_t len, size_t at);

/* The same for any processor, for its tests: the other chooses by the processor. */
size_t mt_event_search_place_plain(const uint8_t *content, size_t len, size_t at);

#endif
