/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads msgpack one object header at a time from bytes that nobody vouches
 * for. Never reads outside them, allocates nothing, does not recurse.
 *
 * An array or map is one header; its elements follow as objects of their own
 * (a map's as key, value, key, value).
 *
 * Thread rule: values.
 */
#ifndef MT_COMMON_MSGPACK_CURSOR_H
#define MT_COMMON_MSGPACK_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mt_mp_type {
	MT_MP_NIL = 1,
	MT_MP_BOOL,
	MT_MP_UINT, /* any integer that is not negative, in whatever family it was written */
	MT_MP_INT,  /* negative */
	MT_MP_FLOAT,
	MT_MP_STR,
	MT_MP_BIN,
	MT_MP_EXT,
	MT_MP_ARRAY,
	MT_MP_MAP,
};

struct mt_mp_object {
	enum mt_mp_type type;
	uint32_t len; /* str, bin, ext: bytes. array: elements. map: pairs. */
	union {
		uint64_t u; /* uint; bool as 0 or 1 */
		int64_t i;
		double f;
		const uint8_t *bytes; /* str, bin, ext */
	};
};

struct mt_mp_cursor {
	const uint8_t *p;
	const uint8_t *end;
};

/*
 * The next header, and the bytes that belong to it. 0; -EAGAIN when the bytes
 * end inside it, with the cursor where it was; -EBADMSG for the one header
 * byte that msgpack does not use.
 */
int mt_mp_next(struct mt_mp_cursor *cursor, struct mt_mp_object *ret_object);
/*
 * Steps over one object with all that is in it. As above; the time is linear
 * in the bytes stepped over, whatever the nesting.
 */
int mt_mp_skip(struct mt_mp_cursor *cursor);

static inline bool mt_mp_str_is(const struct mt_mp_object *object, const char *text, size_t len)
{
	return object->type == MT_MP_STR && object->len == len &&
	       !__builtin_memcmp(object->bytes, text, len);
}

#endif
