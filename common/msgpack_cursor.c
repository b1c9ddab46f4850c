/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/msgpack_cursor.h"

#include <errno.h>
#include <string.h>

static uint64_t load_be(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *p++;
	return v;
}

static void set_signed(struct mt_mp_object *o, int64_t v)
{
	o->type = v < 0 ? MT_MP_INT : MT_MP_UINT;
	o->i = v;
}

static void set_float(struct mt_mp_object *o, const uint8_t *p, unsigned int bytes)
{
	uint64_t bits = load_be(p, bytes);
	uint32_t bits32 = (uint32_t)bits;
	float f;

	o->type = MT_MP_FLOAT;
	if (bytes == 4) {
		memcpy(&f, &bits32, sizeof(f));
		o->f = (double)f;
	} else {
		memcpy(&o->f, &bits, sizeof(o->f));
	}
}

/*
 * Headers from 0xc0 to 0xdf: how many bytes of value or length follow the
 * first one, and what they are.
 */
static const struct {
	uint8_t type; /* enum mt_mp_type; 0 is not used by msgpack */
	uint8_t bytes;
} wide_forms[32] = {
	{ MT_MP_NIL, 0 },   { 0, 0 },		{ MT_MP_BOOL, 0 },  { MT_MP_BOOL, 0 },
	{ MT_MP_BIN, 1 },   { MT_MP_BIN, 2 },	{ MT_MP_BIN, 4 },   { MT_MP_EXT, 1 },
	{ MT_MP_EXT, 2 },   { MT_MP_EXT, 4 },	{ MT_MP_FLOAT, 4 }, { MT_MP_FLOAT, 8 },
	{ MT_MP_UINT, 1 },  { MT_MP_UINT, 2 },	{ MT_MP_UINT, 4 },  { MT_MP_UINT, 8 },
	{ MT_MP_INT, 1 },   { MT_MP_INT, 2 },	{ MT_MP_INT, 4 },   { MT_MP_INT, 8 },
	{ MT_MP_EXT, 0 },   { MT_MP_EXT, 0 },	{ MT_MP_EXT, 0 },   { MT_MP_EXT, 0 },
	{ MT_MP_EXT, 0 },   { MT_MP_STR, 1 },	{ MT_MP_STR, 2 },   { MT_MP_STR, 4 },
	{ MT_MP_ARRAY, 2 }, { MT_MP_ARRAY, 4 }, { MT_MP_MAP, 2 },   { MT_MP_MAP, 4 },
};

/* Points the object to its bytes and steps over them. */
static int take_bytes(struct mt_mp_cursor *c, const uint8_t *p, struct mt_mp_object *o)
{
	size_t len = o->len;

	if (o->type == MT_MP_EXT)
		len++; /* the byte with the extension's own type comes first */
	if ((size_t)(c->end - p) < len)
		return -EAGAIN;
	o->bytes = p + (len - o->len);
	c->p = p + len;
	return 0;
}

static int next_wide(struct mt_mp_cursor *c, struct mt_mp_object *o)
{
	uint8_t first = *c->p;
	unsigned int bytes = wide_forms[first & 31].bytes;
	const uint8_t *p = c->p + 1;
	uint64_t v;

	o->type = wide_forms[first & 31].type;
	if (!o->type)
		return -EBADMSG;
	if ((size_t)(c->end - p) < bytes)
		return -EAGAIN;
	v = load_be(p, bytes);
	p += bytes;
	switch (o->type) {
	case MT_MP_STR:
	case MT_MP_BIN:
	case MT_MP_EXT:
		/* fixext 1 to 16 are d4 to d8. */
		o->len = bytes ? (uint32_t)v : 1u << (first - 0xd4);
		return take_bytes(c, p, o);
	case MT_MP_ARRAY:
	case MT_MP_MAP:
		o->len = (uint32_t)v;
		break;
	case MT_MP_INT:
		set_signed(o, (int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes));
		break;
	case MT_MP_FLOAT:
		set_float(o, p - bytes, bytes);
		break;
	case MT_MP_BOOL:
		o->u = first & 1;
		break;
	default:
		o->u = v;
		break;
	}
	c->p = p;
	return 0;
}

int mt_mp_next(struct mt_mp_cursor *cursor, struct mt_mp_object *ret_object)
{
	struct mt_mp_object o = { 0 };
	uint8_t first;
	int ret = 0;

	if (cursor->p == cursor->end)
		return -EAGAIN;
	first = *cursor->p;
	if (first >= 0xc0 && first < 0xe0) {
		ret = next_wide(cursor, &o);
	} else if (first >= 0xa0 && first < 0xc0) {
		o.type = MT_MP_STR;
		o.len = first & 31;
		ret = take_bytes(cursor, cursor->p + 1, &o);
	} else {
		if (first < 0x80 || first >= 0xe0) {
			set_signed(&o, (int8_t)first);
		} else {
			o.type = first < 0x90 ? MT_MP_MAP : MT_MP_ARRAY;
			o.len = first & 15;
		}
		cursor->p++;
	}
	if (!ret)
		*ret_object = o;
	return ret;
}

int mt_mp_skip(struct mt_mp_cursor *cursor)
{
	struct mt_mp_cursor c = *cursor;
	uint64_t left = 1;

	/*
	 * `left` objects are still to come, each at least one byte, so a claim of
	 * billions of elements ends at the end of the bytes at the latest. Each
	 * byte adds less than 2^33 to it: no overflow below 2^31 bytes.
	 */
	while (left) {
		struct mt_mp_object o;
		int ret = mt_mp_next(&c, &o);

		if (ret)
			return ret;
		left--;
		if (o.type == MT_MP_ARRAY)
			left += o.len;
		else if (o.type == MT_MP_MAP)
			left += 2 * (uint64_t)o.len;
	}
	*cursor = c;
	return 0;
}
