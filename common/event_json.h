/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One event -> one line of `memtrack dump`: a JSON object without spaces, keys
 * in the artifact's order, and a newline.
 *
 * Thread rule: pure but for the buffer given.
 */
#ifndef MT_COMMON_EVENT_JSON_H
#define MT_COMMON_EVENT_JSON_H

#include "common/buf.h"
#include "common/event.h"

/* Appends the line. 0; -EINVAL for an event of no known type; -ENOMEM. */
int mt_event_json(const struct mt_event *event, struct mt_buf *out);

/* Appends text as a JSON string with its quotes; bytes that are not UTF-8 as U+FFFD. */
int mt_json_string(const char *text, size_t len, struct mt_buf *out);

/* The name of a type in the artifact, NULL if there is none. */
const char *mt_event_type_name(uint8_t type);
/* The type of a name, any case; MT_EVENT_NONE if there is none. */
uint8_t mt_event_type_find(const char *name);

#endif
