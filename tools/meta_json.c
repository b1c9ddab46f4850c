/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/meta_json.h"

#include <stdio.h>
#include <string.h>

#include "common/format.h"

static_assert(MT_META_DEPTH_MAX + 4 < MT_JSON_DEPTH, "the deepest metadata fits into JSON");

/* A key as a C string; NULs and what does not fit are cut, which only hostile keys notice. */
static const char *key_text(const struct mt_mp_object *key, char *buffer, size_t cap)
{
	size_t len = key->len < cap ? key->len : cap - 1;

	if (key->type != MT_MP_STR)
		return "?";
	memcpy(buffer, key->bytes, len);
	buffer[len] = 0;
	return buffer;
}

/* The nesting is bounded by mt_meta_parse(). */
void mt_meta_json(struct mt_json *json, const char *key, const struct mt_meta_value *value)
{
	const struct mt_mp_object *object = &value->object;
	bool map = object->type == MT_MP_MAP;
	struct mt_meta_iter it;
	struct mt_meta_value element;
	struct mt_mp_object element_key;
	char text[128];

	switch (object->type) {
	case MT_MP_BOOL:
		mt_json_bool(json, key, object->u);
		break;
	case MT_MP_UINT:
		mt_json_u64(json, key, object->u);
		break;
	case MT_MP_INT:
		mt_json_i64(json, key, object->i);
		break;
	case MT_MP_FLOAT:
		mt_json_f64(json, key, object->f);
		break;
	case MT_MP_STR:
	case MT_MP_BIN:
	case MT_MP_EXT:
		mt_json_text(json, key, (const char *)object->bytes, object->len);
		break;
	case MT_MP_ARRAY:
	case MT_MP_MAP:
		mt_json_begin(json, key, map ? '{' : '[');
		it = mt_meta_iter(value);
		while (mt_meta_next(&it, &element_key, &element))
			mt_meta_json(json, map ? key_text(&element_key, text, sizeof(text)) : NULL,
				     &element);
		mt_json_end(json);
		break;
	default:
		mt_json_null(json, key);
		break;
	}
}
