/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Metadata of an artifact -> JSON, whatever is in it.
 */
#ifndef MT_TOOLS_META_JSON_H
#define MT_TOOLS_META_JSON_H

#include "common/meta_value.h"
#include "tools/json_writer.h"

/* Bytes and keys that are not text become text as mt_json_text() makes it. */
void mt_meta_json(struct mt_json *json, const char *key, const struct mt_meta_value *value);

#endif
