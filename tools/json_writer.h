/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Builds one JSON document, indented, in a buffer: nothing is printed before all of it is there.
 *
 *   mt_json_begin(&json, NULL, '{');
 *   mt_json_u64(&json, "events", 5);
 *   mt_json_end(&json);
 *
 * `key` is NULL inside an array and for the outermost value. Errors (memory) stick and are told by
 * mt_json_print().
 *
 * Threads: one.
 */
#ifndef MT_TOOLS_JSON_WRITER_H
#define MT_TOOLS_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/diag.h"
#include "tools/replay.h"

#define MT_JSON_DEPTH 32u

struct mt_json {
	struct mt_buf text;
	int error;
	unsigned depth;
	bool nested_empty; /* nothing yet in what is open */
	char close[MT_JSON_DEPTH];
};

/* `open` is '{' or '['. At most MT_JSON_DEPTH deep. */
void mt_json_begin(struct mt_json *json, const char *key, char open);
void mt_json_end(struct mt_json *json);

void mt_json_null(struct mt_json *json, const char *key);
void mt_json_bool(struct mt_json *json, const char *key, bool value);
void mt_json_i64(struct mt_json *json, const char *key, int64_t value);
void mt_json_u64(struct mt_json *json, const char *key, uint64_t value);
void mt_json_f64(struct mt_json *json, const char *key, double value);
/* Decimal, without a limit: readers whose numbers are doubles lose what is above 2^53. */
void mt_json_sum(struct mt_json *json, const char *key, mt_sum value);
/* Bytes that are not UTF-8 become U+FFFD. */
void mt_json_text(struct mt_json *json, const char *key, const char *text, size_t len);
void mt_json_str(struct mt_json *json, const char *key, const char *text);
/* Where and why an artifact is damaged; null for kind MT_DIAG_NONE. */
void mt_json_diag(struct mt_json *json, const char *key, const struct mt_diag *diag);

/* Writes the document to standard output and frees it. Returns an exit status, having said why. */
int mt_json_print(struct mt_json *json);

#endif
