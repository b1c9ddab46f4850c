/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/meta_value.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "common/crc32.h"
#include "common/format.h"

/* One object that fills the bytes exactly, no deeper than MT_META_DEPTH_MAX. */
static bool well_formed(const uint8_t *p, size_t len)
{
	struct mt_mp_cursor c = { p, p + len };
	uint64_t left[MT_META_DEPTH_MAX + 1] = { 1 };
	unsigned int depth = 0;

	for (;;) {
		struct mt_mp_object o;

		while (!left[depth]) {
			if (!depth)
				return c.p == c.end;
			depth--;
		}
		if (mt_mp_next(&c, &o))
			return false;
		left[depth]--;
		if (o.type != MT_MP_ARRAY && o.type != MT_MP_MAP)
			continue;
		if (depth == MT_META_DEPTH_MAX)
			return false;
		left[++depth] = o.type == MT_MP_MAP ? 2 * (uint64_t)o.len : o.len;
	}
}

static bool take(struct mt_mp_cursor *c, struct mt_meta_value *ret)
{
	struct mt_mp_cursor inner = *c;

	if (mt_mp_next(&inner, &ret->object) || mt_mp_skip(c))
		return false;
	ret->rest.p = inner.p;
	ret->rest.end = c->p;
	return true;
}

int mt_meta_parse(const uint8_t *inside, size_t len, struct mt_meta_value *ret_map)
{
	struct mt_mp_cursor c;
	uint32_t crc;

	if (len < MT_META_HEAD || memcmp(inside, MT_META_TAG, 4) || inside[4] != MT_META_VERSION ||
	    inside[5] != MT_META_MAP)
		return -ENOENT;
	if (len - MT_META_HEAD > MT_META_BYTES_MAX)
		return -EBADMSG;
	memcpy(&crc, inside + 8, sizeof(crc));
	inside += MT_META_HEAD;
	len -= MT_META_HEAD;
	if (le32toh(crc) != mt_crc32(inside, len) || !well_formed(inside, len))
		return -EBADMSG;
	c.p = inside;
	c.end = inside + len;
	if (!take(&c, ret_map) || ret_map->object.type != MT_MP_MAP)
		return -EBADMSG;
	return 0;
}

struct mt_meta_iter mt_meta_iter(const struct mt_meta_value *value)
{
	struct mt_meta_iter it = { .at = value->rest };

	it.map = value->object.type == MT_MP_MAP;
	if (it.map || value->object.type == MT_MP_ARRAY)
		it.left = value->object.len;
	return it;
}

bool mt_meta_next(struct mt_meta_iter *it, struct mt_mp_object *ret_key,
		  struct mt_meta_value *ret_value)
{
	struct mt_meta_value key;

	if (!it->left)
		return false;
	it->left--;
	key.object = (struct mt_mp_object){ .type = MT_MP_UINT, .u = it->done++ };
	if (it->map && !take(&it->at, &key))
		return false;
	*ret_key = key.object;
	return take(&it->at, ret_value);
}

bool mt_meta_get(const struct mt_meta_value *map, const char *key, struct mt_meta_value *ret)
{
	struct mt_meta_iter it = mt_meta_iter(map);
	size_t len = strlen(key);
	struct mt_meta_value value;
	struct mt_mp_object name;

	while (mt_meta_next(&it, &name, &value)) {
		if (mt_mp_str_is(&name, key, len)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

bool mt_meta_get_u64(const struct mt_meta_value *map, const char *key, uint64_t *ret)
{
	struct mt_meta_value v;

	if (!mt_meta_get(map, key, &v) || v.object.type != MT_MP_UINT)
		return false;
	*ret = v.object.u;
	return true;
}

bool mt_meta_get_i64(const struct mt_meta_value *map, const char *key, int64_t *ret)
{
	struct mt_meta_value v;

	if (!mt_meta_get(map, key, &v) ||
	    (v.object.type != MT_MP_INT && (v.object.type != MT_MP_UINT || v.object.u > INT64_MAX)))
		return false;
	*ret = v.object.i;
	return true;
}

bool mt_meta_get_bool(const struct mt_meta_value *map, const char *key, bool *ret)
{
	struct mt_meta_value v;

	if (!mt_meta_get(map, key, &v) || v.object.type != MT_MP_BOOL)
		return false;
	*ret = v.object.u != 0;
	return true;
}

bool mt_meta_get_text(const struct mt_meta_value *map, const char *key, const char **ret,
		      size_t *ret_len)
{
	struct mt_meta_value v;

	if (!mt_meta_get(map, key, &v) ||
	    (v.object.type != MT_MP_STR && v.object.type != MT_MP_BIN))
		return false;
	*ret = (const char *)v.object.bytes;
	*ret_len = v.object.len;
	return true;
}
