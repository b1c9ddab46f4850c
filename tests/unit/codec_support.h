/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the codec's tests share. Failures end the test at once. */
#ifndef MT_TESTS_UNIT_CODEC_SUPPORT_H
#define MT_TESTS_UNIT_CODEC_SUPPORT_H

#include <stdint.h>

#include "common/artifact_reader.h"
#include "common/buf.h"
#include "common/event.h"

/* A file of tests/golden. */
struct mt_buf golden_load(const char *name);
char *golden_path(const char *name);

/* A reader of these bytes, by way of a memfd. */
struct mt_artifact_reader *reader_of(const void *bytes, size_t len);

/* Reads on until the end or an error, which is returned; the lines go to *json if it is given. */
int read_all(struct mt_artifact_reader *reader, struct mt_buf *json);

/* A frame without content checksum and with raw blocks around this content. */
void append_frame(struct mt_buf *out, const void *content, size_t len);

/* Deterministic random numbers. */
uint64_t rnd(uint64_t *state);
/* Of any bit length with equal probability. */
uint64_t rnd_wide(uint64_t *state);

/*
 * An event of any type with fields of any width. What it points to is kept in
 * `store`, good for one event at a time.
 */
struct event_store {
	struct mt_mapping mapping;
	struct mt_stack stack;
	char path[400];
	uint64_t regs[80];
	uint64_t chain[400];
	uint8_t bytes[700];
};
void rnd_event(uint64_t *state, struct event_store *store, struct mt_event *ret);

/* Packs with msgpack-c. Paths have to be valid UTF-8. */
void reference_pack(const struct mt_event *e, struct mt_buf *out);

#endif
