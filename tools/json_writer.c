/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/event_json.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/text.h"

static void append(struct mt_json *json, const char *text, size_t len)
{
	if (!json->error)
		json->error = mt_buf_append(&json->text, text, len);
}

static void append_str(struct mt_json *json, const char *text)
{
	append(json, text, strlen(text));
}

static void quote(struct mt_json *json, const char *text, size_t len)
{
	if (!json->error)
		json->error = mt_json_string(text, len, &json->text);
}

static void new_line(struct mt_json *json)
{
	static const char spaces[] =
		"                                                                ";

	static_assert(sizeof(spaces) > 2 * MT_JSON_DEPTH, "room for the deepest line");
	append_str(json, "\n");
	append(json, spaces, 2ul * json->depth);
}

/* What stands before every value: the comma, the line, the key. */
static void next(struct mt_json *json, const char *key)
{
	if (json->depth) {
		if (!json->nested_empty)
			append_str(json, ",");
		new_line(json);
	}
	json->nested_empty = false;
	if (!key)
		return;
	quote(json, key, strlen(key));
	append_str(json, ": ");
}

void mt_json_begin(struct mt_json *json, const char *key, char open)
{
	const char text[2] = { open, 0 };

	assert(json->depth < MT_JSON_DEPTH);
	next(json, key);
	append_str(json, text);
	json->close[json->depth++] = open == '{' ? '}' : ']';
	json->nested_empty = true;
}

void mt_json_end(struct mt_json *json)
{
	const char text[2] = { json->close[--json->depth], 0 };

	if (!json->nested_empty)
		new_line(json);
	append_str(json, text);
	json->nested_empty = false;
}

void mt_json_null(struct mt_json *json, const char *key)
{
	next(json, key);
	append_str(json, "null");
}

void mt_json_bool(struct mt_json *json, const char *key, bool value)
{
	next(json, key);
	append_str(json, value ? "true" : "false");
}

void mt_json_i64(struct mt_json *json, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	next(json, key);
	append_str(json, text);
}

void mt_json_u64(struct mt_json *json, const char *key, uint64_t value)
{
	mt_json_sum(json, key, value);
}

void mt_json_f64(struct mt_json *json, const char *key, double value)
{
	char text[32];

	next(json, key);
	/* JSON has no word for the others. */
	if (!isfinite(value)) {
		append_str(json, "null");
		return;
	}
	snprintf(text, sizeof(text), "%.17g", value);
	append_str(json, text);
}

void mt_json_sum(struct mt_json *json, const char *key, mt_sum value)
{
	char text[MT_SUM_CHARS];

	next(json, key);
	append_str(json, mt_sum_text(value, false, text));
}

void mt_json_text(struct mt_json *json, const char *key, const char *text, size_t len)
{
	next(json, key);
	quote(json, text, len);
}

void mt_json_str(struct mt_json *json, const char *key, const char *text)
{
	mt_json_text(json, key, text, strlen(text));
}

void mt_json_diag(struct mt_json *json, const char *key, const struct mt_diag *diag)
{
	if (diag->kind == MT_DIAG_NONE) {
		mt_json_null(json, key);
		return;
	}
	mt_json_begin(json, key, '{');
	mt_json_u64(json, "frame", diag->frame);
	mt_json_u64(json, "offset", diag->offset);
	mt_json_str(json, "why", diag->why);
	mt_json_end(json);
}

int mt_json_print(struct mt_json *json)
{
	int status = MT_EXIT_DONE;
	int ret;

	assert(!json->depth);
	append_str(json, "\n");
	if (json->error) {
		fprintf(stderr, "memtrack: %s\n", strerror(-json->error));
		status = MT_EXIT_FAILED;
	} else {
		ret = mt_output_write(STDOUT_FILENO, json->text.data, json->text.len);
		if (ret)
			status = mt_output_failed(ret);
	}
	mt_buf_fini(&json->text);
	return status;
}
