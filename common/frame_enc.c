/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/frame_enc.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/buf.h"
#include "common/format.h"
#include "common/utf8.h"

/*
 * How a heap event is written. Nearly all of its bytes are known beforehand,
 * so they are copied in blocks of fixed size (one or two vector moves) and the
 * cursor advances by the true length; the next copy overwrites the excess.
 *
 *   8n a3pid <pid> a3tid <tid> a9timestamp | <ts> | a4addr | <addr> |
 *   \____ head: cached by pid and tid ____/
 *
 *   a4type a6Malloc a4size | <size> | [ aastack_hash | <hash> ]
 *   \__ tail: by type ____/
 *
 * The first byte holds the number of fields and is patched last. The integers
 * are written without a branch: their bit length gives marker, shift and size.
 */

enum {
	HEADS = 64,	     /* cached heads; a power of two */
	HEAD_BYTES = 32,     /* the longest is 29 */
	TAIL_BYTES = 32,     /* the longest is 23 */
	EVENT_ROOM = 192,    /* longest heap event (131 bytes) and what block copies exceed it by */
	ARRAY_HEAD = 5,	     /* longest header of a str, bin or array */
	INT_ROOM = 9,	     /* longest integer */
	RESERVE_EVENTS = 256 /* events that room is made for at once */
};

/* What follows the type. */
enum tail_shape {
	TAIL_COLD = 0, /* not written by template */
	TAIL_NONE,
	TAIL_SIZE,
	TAIL_ALLOC,   /* size, then stack_hash unless it is 0 */
	TAIL_REALLOC, /* old_addr if known, then as TAIL_ALLOC */
};

struct head {
	int32_t pid;
	int32_t tid;
	uint32_t len; /* 0: the slot is empty */
	uint8_t bytes[HEAD_BYTES];
};

struct tail {
	uint8_t shape;
	uint8_t fields; /* of the whole event without stack_hash and old_addr */
	uint8_t len;
	char bytes[TAIL_BYTES];
};

struct mt_frame_enc {
	ZSTD_CCtx *cctx;
	struct mt_buf content;
	struct mt_buf frame;
	struct head heads[HEADS];
};

#define TYPE_KEY "\xa4type"
#define SIZE_KEY "\xa4size"
/* The type with its header byte, then what always follows. */
#define TAIL(shape, fields, text)                                       \
	{                                                               \
		shape, fields, sizeof(TYPE_KEY text) - 1, TYPE_KEY text \
	}

static const struct tail tails[MT_EVENT_TYPES] = {
	[MT_EVENT_MALLOC] = TAIL(TAIL_ALLOC, 6, "\xa6Malloc" SIZE_KEY),
	[MT_EVENT_CALLOC] = TAIL(TAIL_ALLOC, 6,
				 "\xa6"
				 "Calloc" SIZE_KEY),
	[MT_EVENT_ALIGNED_ALLOC] = TAIL(TAIL_ALLOC, 6,
					"\xac"
					"AlignedAlloc" SIZE_KEY),
	[MT_EVENT_REALLOC] = TAIL(TAIL_REALLOC, 6, "\xa7Realloc"),
	[MT_EVENT_FREE] = TAIL(TAIL_NONE, 5,
			       "\xa4"
			       "Free"),
	[MT_EVENT_EXEC] = TAIL(TAIL_NONE, 5,
			       "\xa4"
			       "Exec"),
	[MT_EVENT_EXIT] = TAIL(TAIL_NONE, 5,
			       "\xa4"
			       "Exit"),
	[MT_EVENT_MMAP] = TAIL(TAIL_SIZE, 6, "\xa4Mmap" SIZE_KEY),
	[MT_EVENT_MUNMAP] = TAIL(TAIL_SIZE, 6, "\xa6Munmap" SIZE_KEY),
	[MT_EVENT_BRK] = TAIL(TAIL_SIZE, 6,
			      "\xa3"
			      "Brk" SIZE_KEY),
};

struct int_form {
	uint8_t marker;
	uint8_t shift;
	uint8_t total;
	uint8_t inline_mask; /* bits of the value that stand in the marker itself */
};

/* By the value's bit length. */
static const struct int_form int_forms[65] = {
	[0 ... 7] = { 0x00, 0, 1, 0x7f }, [8] = { 0xcc, 56, 2, 0 },
	[9 ... 16] = { 0xcd, 48, 3, 0 },  [17 ... 32] = { 0xce, 32, 5, 0 },
	[33 ... 64] = { 0xcf, 0, 9, 0 },
};

/* Writes 9 bytes whatever the length. */
static inline uint8_t *put_uint(uint8_t *p, uint64_t v)
{
	const struct int_form *form = &int_forms[64 - __builtin_clzll(v | 1)];
	uint64_t be = htobe64(v << form->shift);

	p[0] = (uint8_t)(form->marker | (v & form->inline_mask));
	memcpy(p + 1, &be, sizeof(be));
	return p + form->total;
}

static uint8_t *put_be(uint8_t *p, uint8_t marker, uint64_t v, unsigned int bytes)
{
	uint64_t be = htobe64(v << (64 - 8 * bytes));

	*p++ = marker;
	memcpy(p, &be, bytes);
	return p + bytes;
}

static uint8_t *put_int(uint8_t *p, int64_t v)
{
	if (v >= 0)
		return put_uint(p, (uint64_t)v);
	if (v >= -32) {
		*p = (uint8_t)v;
		return p + 1;
	}
	if (v >= INT8_MIN)
		return put_be(p, 0xd0, (uint64_t)v, 1);
	if (v >= INT16_MIN)
		return put_be(p, 0xd1, (uint64_t)v, 2);
	if (v >= INT32_MIN)
		return put_be(p, 0xd2, (uint64_t)v, 4);
	return put_be(p, 0xd3, (uint64_t)v, 8);
}

static uint8_t *put_str_head(uint8_t *p, uint32_t len)
{
	if (len < 32) {
		*p = (uint8_t)(0xa0 | len);
		return p + 1;
	}
	if (len <= UINT8_MAX)
		return put_be(p, 0xd9, len, 1);
	if (len <= UINT16_MAX)
		return put_be(p, 0xda, len, 2);
	return put_be(p, 0xdb, len, 4);
}

static uint8_t *put_bin_head(uint8_t *p, uint32_t len)
{
	if (len <= UINT8_MAX)
		return put_be(p, 0xc4, len, 1);
	if (len <= UINT16_MAX)
		return put_be(p, 0xc5, len, 2);
	return put_be(p, 0xc6, len, 4);
}

static uint8_t *put_array_head(uint8_t *p, uint32_t len)
{
	if (len < 16) {
		*p = (uint8_t)(0x90 | len);
		return p + 1;
	}
	if (len <= UINT16_MAX)
		return put_be(p, 0xdc, len, 2);
	return put_be(p, 0xdd, len, 4);
}

/* A key or a name of less than 32 bytes, given as a literal. */
#define put_name(p, text) put_short((p), (text), sizeof(text) - 1)
static uint8_t *put_short(uint8_t *p, const char *text, size_t len)
{
	*p++ = (uint8_t)(0xa0 | len);
	memcpy(p, text, len);
	return p + len;
}

static uint32_t head_slot(int32_t pid, int32_t tid)
{
	return (((uint32_t)pid * 0x9e3779b1u) ^ ((uint32_t)tid * 0x85ebca6bu)) >> 26;
}

static_assert(HEADS == 1 << (32 - 26), "head_slot() gives an index of heads");

static __attribute__((noinline)) void make_head(struct head *head, int32_t pid, int32_t tid)
{
	/* put_uint() writes 9 bytes whatever it needs. */
	uint8_t bytes[HEAD_BYTES + INT_ROOM] = { 0 };
	uint8_t *p = bytes + 1;

	p = put_name(p, "pid");
	p = put_int(p, pid);
	p = put_name(p, "tid");
	p = put_int(p, tid);
	p = put_name(p, "timestamp");
	head->pid = pid;
	head->tid = tid;
	head->len = (uint32_t)(p - bytes);
	memcpy(head->bytes, bytes, HEAD_BYTES);
}

/* Everything before the type, the same for all events. */
static inline uint8_t *put_common(struct mt_frame_enc *enc, uint8_t *p, const struct mt_event *e)
{
	struct head *head = &enc->heads[head_slot(e->pid, e->tid)];

	if (head->pid != e->pid || head->tid != e->tid || !head->len)
		make_head(head, e->pid, e->tid);
	memcpy(p, head->bytes, HEAD_BYTES);
	p = put_uint(p + head->len, e->timestamp_ns);
	memcpy(p,
	       "\xa4"
	       "addr\0\0",
	       8);
	return put_uint(p + 5, e->addr);
}

static inline uint8_t *put_stack_hash(uint8_t *p, uint64_t hash)
{
	memcpy(p, "\xaastack_hash\0\0\0\0", 16);
	return put_uint(p + 11, hash);
}

static inline uint8_t *put_hot(struct mt_frame_enc *enc, uint8_t *p, const struct mt_event *e,
			       const struct tail *tail)
{
	uint8_t *start = p;
	unsigned int fields = tail->fields;

	p = put_common(enc, p, e);
	memcpy(p, tail->bytes, TAIL_BYTES);
	p += tail->len;
	if (tail->shape != TAIL_NONE) {
		if (tail->shape == TAIL_REALLOC) {
			if (e->flags & MT_EVENT_HAS_OLD) {
				memcpy(p, "\xa8old_addr\0\0\0\0\0\0", 16);
				p = put_uint(p + 9, e->aux);
				fields++;
			}
			memcpy(p, SIZE_KEY "\0\0", 8);
			p += 5;
		}
		p = put_uint(p, e->size);
		if (tail->shape != TAIL_SIZE && e->stack_hash) {
			p = put_stack_hash(p, e->stack_hash);
			fields++;
		}
	}
	*start = (uint8_t)(0x80 | fields);
	return p;
}

/* The room that a Mapping or Stack needs beside EVENT_ROOM. */
static size_t cold_room(const struct mt_event *e)
{
	const struct mt_stack *s = e->stack;

	if (e->type == MT_EVENT_MAPPING)
		return (size_t)e->mapping->path_len * MT_UTF8_REPLACEMENT_LEN + EVENT_ROOM;
	if (e->type == MT_EVENT_STACK)
		return ((size_t)s->regs_len + s->fp_chain_len) * INT_ROOM + s->bytes_len +
		       EVENT_ROOM;
	return 0;
}

static uint8_t *put_array(uint8_t *p, const uint64_t *values, uint32_t n)
{
	p = put_array_head(p, n);
	for (uint32_t i = 0; i < n; i++)
		p = put_uint(p, values[i]);
	return p;
}

static uint8_t *put_mapping(uint8_t *p, const struct mt_mapping *m)
{
	size_t len = mt_utf8_clean_len(m->path, m->path_len);

	p = put_name(p, "Mapping");
	p = put_name(p, "path");
	p = put_str_head(p, (uint32_t)len);
	mt_utf8_clean(m->path, m->path_len, (char *)p);
	p += len;
	p = put_uint(put_name(p, "dev"), m->dev);
	p = put_uint(put_name(p, "ino"), m->ino);
	p = put_uint(put_name(p, "file_offset"), m->file_offset);
	return put_uint(put_name(p, "len"), m->len);
}

static uint8_t *put_stack(uint8_t *p, const struct mt_stack *s)
{
	p = put_name(p, "Stack");
	p = put_uint(put_name(p, "hash"), s->hash);
	p = put_uint(put_name(p, "sp"), s->sp);
	p = put_array(put_name(p, "regs"), s->regs, s->regs_len);
	p = put_bin_head(put_name(p, "bytes"), s->bytes_len);
	if (s->bytes_len)
		memcpy(p, s->bytes, s->bytes_len);
	p += s->bytes_len;
	p = put_array(put_name(p, "fp_chain"), s->fp_chain, s->fp_chain_len);
	p = put_name(p, "truncated");
	*p = s->truncated ? 0xc3 : 0xc2;
	return p + 1;
}

/* The types that are rare. NULL for a type that does not exist. */
static __attribute__((noinline)) uint8_t *put_cold(struct mt_frame_enc *enc, uint8_t *p,
						   const struct mt_event *e)
{
	uint8_t *start = p;
	unsigned int fields;

	p = put_common(enc, p, e);
	p = put_name(p, "type");
	switch (e->type) {
	case MT_EVENT_FORK:
		p = put_name(put_name(p, "Fork"), "parent_pid");
		p = put_int(p, (int32_t)e->aux);
		fields = 6;
		break;
	case MT_EVENT_RSS:
		p = put_name(put_name(p, "Rss"), "member");
		p = put_int(p, e->member);
		p = put_uint(put_name(p, "size"), e->size);
		fields = 7;
		break;
	case MT_EVENT_RMAP:
		p = put_name(put_name(p, "Rmap"), "member");
		p = put_int(p, e->member);
		p = put_int(put_name(p, "delta"), e->delta);
		fields = 7;
		break;
	case MT_EVENT_MAPPING:
		p = put_mapping(p, e->mapping);
		fields = 10;
		break;
	case MT_EVENT_STACK:
		p = put_stack(p, e->stack);
		fields = 11;
		break;
	default:
		return NULL;
	}
	*start = (uint8_t)(0x80 | fields);
	return p;
}

/* Room for the next events by template, and for the first of them whatever it is. */
static int make_room(struct mt_buf *out, const struct mt_event *e, size_t room)
{
	room += cold_room(e);
	if (room > MT_FRAME_CONTENT_MAX || out->len > MT_FRAME_CONTENT_MAX - room)
		return -EMSGSIZE;
	return mt_buf_reserve(out, room);
}

static int serialize(struct mt_frame_enc *enc, const struct mt_event *events, size_t n)
{
	struct mt_buf *out = &enc->content;
	size_t done = 0;

	out->len = 0;
	if (n > MT_BATCH_EVENTS)
		return -EINVAL;
	while (done < n) {
		size_t end = n - done < RESERVE_EVENTS ? n : done + RESERVE_EVENTS;
		int ret = make_room(out, &events[done], (end - done) * EVENT_ROOM);
		uint8_t *p;

		if (ret)
			return ret;
		p = out->data + out->len;
		for (; done < end; done++) {
			const struct mt_event *e = &events[done];

			if (e->type >= MT_EVENT_TYPES)
				return -EINVAL;
			if (tails[e->type].shape != TAIL_COLD) {
				p = put_hot(enc, p, e, &tails[e->type]);
				continue;
			}
			out->len = (size_t)(p - out->data);
			ret = make_room(out, e, (end - done) * EVENT_ROOM);
			if (ret)
				return ret;
			p = put_cold(enc, out->data + out->len, e);
			if (!p)
				return -EINVAL;
		}
		out->len = (size_t)(p - out->data);
	}
	return 0;
}

int mt_frame_enc_serialize(struct mt_frame_enc *enc, const struct mt_event *events, size_t n,
			   const uint8_t **ret_content, size_t *ret_len)
{
	int ret = serialize(enc, events, n);

	if (ret)
		return ret;
	*ret_content = enc->content.data;
	*ret_len = enc->content.len;
	return 0;
}

int mt_frame_enc_frame(struct mt_frame_enc *enc, const struct mt_event *events, size_t n,
		       const uint8_t **ret_frame, size_t *ret_len)
{
	size_t size;
	int ret;

	ret = serialize(enc, events, n);
	if (ret)
		return ret;
	enc->frame.len = 0;
	ret = mt_buf_reserve(&enc->frame, ZSTD_compressBound(enc->content.len));
	if (ret)
		return ret;
	size = ZSTD_compress2(enc->cctx, enc->frame.data, enc->frame.cap, enc->content.data,
			      enc->content.len);
	/* The room is enough by zstd's own bound, so only memory can be short. */
	if (ZSTD_isError(size))
		return -ENOMEM;
	enc->frame.len = size;
	*ret_frame = enc->frame.data;
	*ret_len = size;
	return 0;
}

size_t mt_frame_enc_content_len(const struct mt_frame_enc *enc)
{
	return enc->content.len;
}

int mt_frame_level_min(void)
{
	return ZSTD_minCLevel();
}

int mt_frame_level_max(void)
{
	return ZSTD_maxCLevel();
}

static bool set_parameters(ZSTD_CCtx *cctx, int level)
{
	size_t bad = ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, level);

	/*
	 * The default level is tuned to events: matches are long, and a small
	 * table finds them as well as a large one (docs/format.md has figures).
	 */
	if (!ZSTD_isError(bad) && level == MT_FRAME_LEVEL_DEFAULT) {
		bad = ZSTD_CCtx_setParameter(cctx, ZSTD_c_minMatch, 6);
		if (!ZSTD_isError(bad))
			bad = ZSTD_CCtx_setParameter(cctx, ZSTD_c_hashLog, 11);
	}
	return !ZSTD_isError(bad);
}

int mt_frame_enc_new(int level, struct mt_frame_enc **ret_enc)
{
	struct mt_frame_enc *enc;

	/* 0 is zstd's word for "your default", which is not ours. */
	if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel() || level == 0)
		return -EINVAL;
	enc = calloc(1, sizeof(*enc));
	if (!enc)
		return -ENOMEM;
	enc->cctx = ZSTD_createCCtx();
	if (!enc->cctx || !set_parameters(enc->cctx, level)) {
		mt_frame_enc_free(enc);
		return -ENOMEM;
	}
	*ret_enc = enc;
	return 0;
}

void mt_frame_enc_free(struct mt_frame_enc *enc)
{
	if (!enc)
		return;
	ZSTD_freeCCtx(enc->cctx);
	mt_buf_fini(&enc->content);
	mt_buf_fini(&enc->frame);
	free(enc);
}
