/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads the map of a metadata frame: checked whole by mt_meta_parse(), then
 * looked up in place, without a copy. Values point into the payload and are
 * valid as long as it is.
 *
 * Thread rule: values; any number of threads may read one payload.
 */
#ifndef MT_COMMON_META_VALUE_H
#define MT_COMMON_META_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/msgpack_cursor.h"

struct mt_meta_value {
	struct mt_mp_object object;
	struct mt_mp_cursor rest; /* behind the object's header */
};

/*
 * What stands inside a skippable frame of ours: head and payload. 0;
 * -ENOENT when it is not a metadata map that we can read (other tag, version
 * or kind: no error); -EBADMSG when it says it is one and is damaged.
 */
int mt_meta_parse(const uint8_t *inside, size_t len, struct mt_meta_value *ret_map);

/* Looks `key` up in a map. False when it is not there or `map` is none. */
bool mt_meta_get(const struct mt_meta_value *map, const char *key, struct mt_meta_value *ret);
/* The same for values of one type; false, and *ret as it was, when it is of another. */
bool mt_meta_get_u64(const struct mt_meta_value *map, const char *key, uint64_t *ret);
bool mt_meta_get_i64(const struct mt_meta_value *map, const char *key, int64_t *ret);
bool mt_meta_get_bool(const struct mt_meta_value *map, const char *key, bool *ret);
/* A str or bin. Not terminated by a NUL, not trusted to be text. */
bool mt_meta_get_text(const struct mt_meta_value *map, const char *key, const char **ret,
		      size_t *ret_len);

/*
 * Walks a map or array:
 *
 *   struct mt_meta_iter it = mt_meta_iter(&value);
 *   while (mt_meta_next(&it, &key, &element))
 *
 * The key of an array's element is its value's place: an MT_MP_UINT. For
 * anything but a map or array there is nothing to walk.
 */
struct mt_meta_iter {
	struct mt_mp_cursor at;
	uint32_t left;
	uint32_t done;
	bool map;
};

struct mt_meta_iter mt_meta_iter(const struct mt_meta_value *value);
bool mt_meta_next(struct mt_meta_iter *it, struct mt_mp_object *ret_key,
		  struct mt_meta_value *ret_value);

#endif
