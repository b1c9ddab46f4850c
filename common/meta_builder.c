/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/meta_builder.h"

#include <endian.h>
#include <errno.h>
#include <msgpack.h>
#include <string.h>

#include "common/crc32.h"
#include "common/utf8.h"

enum {
	HEADS = MT_SKIPPABLE_HEAD + MT_META_HEAD,
	WIDE_HEAD = 5, /* map 32 and array 32: marker and count */
};

/* msgpack-c's way to hand out bytes. */
static int write_buf(void *data, const char *bytes, size_t len)
{
	struct mt_meta_builder *b = data;
	int ret = mt_buf_append(&b->frame, bytes, len);

	if (ret && !b->error)
		b->error = ret;
	return ret;
}

static msgpack_packer packer(struct mt_meta_builder *b)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, b, write_buf);
	return pk;
}

static void pack_text(struct mt_meta_builder *b, const char *text, size_t len)
{
	msgpack_packer pk = packer(b);

	/* What fails is in b->error by way of write_buf(). */
	if (mt_utf8_valid(text, len))
		(void)msgpack_pack_str_with_body(&pk, text, len);
	else
		(void)msgpack_pack_bin_with_body(&pk, text, len);
}

/* Counts a value in what is open and puts its key. Returns false when it must not follow. */
static bool next_value(struct mt_meta_builder *b, const char *key)
{
	if (!b->error && (!b->depth || b->open[b->depth - 1].map != (key != NULL)))
		b->error = -EINVAL;
	if (!b->error && b->frame.len > HEADS + MT_META_BYTES_MAX)
		b->error = -EMSGSIZE;
	if (b->error)
		return false;
	b->open[b->depth - 1].count++;
	if (key)
		pack_text(b, key, strlen(key));
	return !b->error;
}

/*
 * The count is known at the end only, so the header is written in its widest
 * form and filled in by mt_meta_end().
 */
static void begin(struct mt_meta_builder *b, bool map)
{
	const char head[WIDE_HEAD] = { (char)(map ? 0xdf : 0xdd) };

	if (b->depth == MT_META_DEPTH_MAX) {
		b->error = -EINVAL;
		return;
	}
	b->open[b->depth].head = b->frame.len;
	b->open[b->depth].count = 0;
	b->open[b->depth].map = map;
	if (!write_buf(b, head, sizeof(head)))
		b->depth++;
}

void mt_meta_init(struct mt_meta_builder *b, const char *name)
{
	static const char heads[HEADS];

	*b = (struct mt_meta_builder){ 0 };
	if (!write_buf(b, heads, HEADS))
		begin(b, true);
	mt_meta_put_str(b, "frame", name);
}

void mt_meta_fini(struct mt_meta_builder *b)
{
	mt_buf_fini(&b->frame);
	b->depth = 0;
}

void mt_meta_put_nil(struct mt_meta_builder *b, const char *key)
{
	msgpack_packer pk = packer(b);

	if (next_value(b, key))
		(void)msgpack_pack_nil(&pk); /* failure: b->error */
}

void mt_meta_put_bool(struct mt_meta_builder *b, const char *key, bool v)
{
	msgpack_packer pk = packer(b);

	if (next_value(b, key))
		(void)(v ? msgpack_pack_true(&pk) : msgpack_pack_false(&pk)); /* as above */
}

void mt_meta_put_u64(struct mt_meta_builder *b, const char *key, uint64_t v)
{
	msgpack_packer pk = packer(b);

	if (next_value(b, key))
		(void)msgpack_pack_uint64(&pk, v); /* as above */
}

void mt_meta_put_i64(struct mt_meta_builder *b, const char *key, int64_t v)
{
	msgpack_packer pk = packer(b);

	if (next_value(b, key))
		(void)msgpack_pack_int64(&pk, v); /* as above */
}

void mt_meta_put_f64(struct mt_meta_builder *b, const char *key, double v)
{
	msgpack_packer pk = packer(b);

	if (next_value(b, key))
		(void)msgpack_pack_double(&pk, v); /* as above */
}

void mt_meta_put_text(struct mt_meta_builder *b, const char *key, const char *text, size_t len)
{
	if (next_value(b, key))
		pack_text(b, text, len);
}

void mt_meta_put_str(struct mt_meta_builder *b, const char *key, const char *text)
{
	if (text)
		mt_meta_put_text(b, key, text, strlen(text));
	else
		mt_meta_put_nil(b, key);
}

void mt_meta_begin_map(struct mt_meta_builder *b, const char *key)
{
	if (next_value(b, key))
		begin(b, true);
}

void mt_meta_begin_array(struct mt_meta_builder *b, const char *key)
{
	if (next_value(b, key))
		begin(b, false);
}

void mt_meta_end(struct mt_meta_builder *b)
{
	uint32_t count;

	if (!b->depth && !b->error)
		b->error = -EINVAL;
	if (b->error)
		return;
	b->depth--;
	count = htobe32(b->open[b->depth].count);
	memcpy(b->frame.data + b->open[b->depth].head + 1, &count, sizeof(count));
}

size_t mt_meta_len(const struct mt_meta_builder *b)
{
	return b->frame.len;
}

int mt_meta_finish(struct mt_meta_builder *b, const uint8_t **ret_frame, size_t *ret_len)
{
	uint8_t *head = b->frame.data;
	uint32_t magic = htole32(MT_META_MAGIC), len, crc;

	while (b->depth && !b->error)
		mt_meta_end(b);
	if (!b->error && b->frame.len > HEADS + MT_META_BYTES_MAX)
		b->error = -EMSGSIZE;
	if (b->error)
		return b->error;
	len = htole32((uint32_t)b->frame.len - MT_SKIPPABLE_HEAD);
	crc = htole32(mt_crc32(head + HEADS, b->frame.len - HEADS));
	memcpy(head, &magic, 4);
	memcpy(head + 4, &len, 4);
	memcpy(head + 8, MT_META_TAG, 4);
	head[12] = MT_META_VERSION;
	head[13] = MT_META_MAP;
	memcpy(head + 16, &crc, 4);
	*ret_frame = b->frame.data;
	*ret_len = b->frame.len;
	return 0;
}
