/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/frame_dec.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/format.h"
#include "common/frame_dec_general.h"
#include "common/msgpack_cursor.h"

/*
 * Two decoders. The fast one knows the layout that writers of this format
 * make, compares whole words and gives up at the first surprise; the general
 * one then takes the event from its start. What the fast one accepts, the
 * general one gives the same result for.
 */

enum {
	/* No event of the fast kinds is longer; so one check covers all its reads. */
	FAST_ROOM = 192,
	/* A batch ends early when the stacks and mappings in it take so much. */
	ARENA_BATCH = 16 << 20,
	HUGE_PAGE = 2 << 20,
	DEC_BYTES = (sizeof(struct mt_frame_dec) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE
};

/* Steps over `text`, or returns NULL; takes and gives NULL. Compares words: len is constant. */
#define FAST_TEXT(p, text) fast_text((p), (text), sizeof(text) - 1)
static inline const uint8_t *fast_text(const uint8_t *p, const char *text, size_t len)
{
	return p && !memcmp(p, text, len) ? p + len : NULL;
}

/* An unsigned integer in one of the unsigned forms, or NULL. Reads at most 9 bytes. */
static inline const uint8_t *fast_uint(const uint8_t *p, uint64_t *ret)
{
	uint64_t be;
	unsigned int width;

	if (!p)
		return NULL;
	if (*p < 0x80) {
		*ret = *p;
		return p + 1;
	}
	if ((*p & 0xfc) != 0xcc)
		return NULL;
	width = 1u << (*p & 3);
	memcpy(&be, p + 1, sizeof(be));
	*ret = be64toh(be) >> (64 - 8 * width);
	return p + 1 + width;
}

/*
 * The same for a field that mostly has the same width as in the event before: with a branch for
 * each width, which is guessed right, the next field need not wait for this one.
 */
static inline const uint8_t *fast_steady_uint(const uint8_t *p, uint64_t *ret)
{
	uint64_t be64;
	uint32_t be32;
	uint16_t be16;

	if (!p)
		return NULL;
	switch (*p) {
	case 0xcf:
		memcpy(&be64, p + 1, sizeof(be64));
		*ret = be64toh(be64);
		return p + 9;
	case 0xce:
		memcpy(&be32, p + 1, sizeof(be32));
		*ret = be32toh(be32);
		return p + 5;
	case 0xcd:
		memcpy(&be16, p + 1, sizeof(be16));
		*ret = be16toh(be16);
		return p + 3;
	default:
		return fast_uint(p, ret);
	}
}

static inline const uint8_t *fast_pid(const uint8_t *p, int32_t *ret)
{
	uint64_t v;

	p = fast_steady_uint(p, &v);
	if (!p || v > INT32_MAX)
		return NULL;
	*ret = (int32_t)v;
	return p;
}

/*
 * The type, or MT_EVENT_NONE: looked up by the low bits of its first letter, which differ for all
 * the fast ones, without a branch, since which it is is as good as random. Reads at most 16 bytes.
 */
static inline uint8_t fast_type(const uint8_t *p, size_t *ret_len)
{
	static const struct {
		uint8_t text[8]; /* the header byte and what follows it, then zeros */
		uint8_t mask[8];
		uint8_t len;
		uint8_t type;
	} fast_types[8] = {
		['M' & 7] = { "\xa6Malloc", "\xff\xff\xff\xff\xff\xff\xff", 7, MT_EVENT_MALLOC },
		['F' & 7] = { "\xa4"
			      "Free",
			      "\xff\xff\xff\xff\xff", 5, MT_EVENT_FREE },
		['R' & 7] = { { 0xa7, 'R', 'e', 'a', 'l', 'l', 'o', 'c' },
			      { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
			      8,
			      MT_EVENT_REALLOC },
		['C' & 7] = { "\xa6"
			      "Calloc",
			      "\xff\xff\xff\xff\xff\xff\xff", 7, MT_EVENT_CALLOC },
		['A' & 7] = { { 0xac, 'A', 'l', 'i', 'g', 'n', 'e', 'd' },
			      { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
			      13,
			      MT_EVENT_ALIGNED_ALLOC },
	};
	unsigned int i = p[1] & 7u;
	uint64_t got, text, mask;

	memcpy(&got, p, sizeof(got));
	memcpy(&text, fast_types[i].text, sizeof(text));
	memcpy(&mask, fast_types[i].mask, sizeof(mask));
	/* Letters without a type have a mask of zeros, and the type MT_EVENT_NONE. */
	if ((got & mask) != text)
		return MT_EVENT_NONE;
	if (fast_types[i].type == MT_EVENT_ALIGNED_ALLOC && memcmp(p + 8, "Alloc", 5))
		return MT_EVENT_NONE;
	*ret_len = fast_types[i].len;
	return fast_types[i].type;
}

/*
 * The size, when there is one; else *ret is 0 and p stays. Without a branch on that and on its
 * width, which are as good as random. Reads at most 14 bytes. NULL: not for here.
 */
static inline const uint8_t *fast_size(const uint8_t *p, bool there, uint64_t *ret)
{
	uint64_t mask = 0 - (uint64_t)there, be;
	uint8_t first = p[5];
	unsigned int wide = (first & 0xfc) == 0xcc;
	unsigned int width = wide << (first & 3);

	if (there & (!FAST_TEXT(p, "\xa4size") | !(wide | (first < 0x80))))
		return NULL;
	memcpy(&be, p + 6, sizeof(be));
	/* Two shifts, since one by 64, of a number in its first byte, is not defined. */
	*ret = ((be64toh(be) >> (32 - 4 * width) >> (32 - 4 * width)) | (first & (wide - 1))) &
	       mask;
	return p + ((6 + width) & mask);
}

/*
 * p has FAST_ROOM bytes. Fields are read in the writers' order; that as many
 * were read as the map's header says is checked last. NULL: not for here.
 */
static inline const uint8_t *decode_fast(const uint8_t *p, struct mt_event *e)
{
	unsigned int claimed = *p & 15u, fields = 5;
	bool map = (*p & 0xf0) == 0x80;
	size_t len;

	p = map ? FAST_TEXT(p + 1, "\xa3pid") : NULL;
	p = fast_pid(p, &e->pid);
	p = FAST_TEXT(p, "\xa3tid");
	p = fast_pid(p, &e->tid);
	p = FAST_TEXT(p, "\xa9timestamp");
	p = fast_steady_uint(p, &e->timestamp_ns);
	p = FAST_TEXT(p, "\xa4"
			 "addr");
	p = fast_steady_uint(p, &e->addr);
	p = FAST_TEXT(p, "\xa4type");
	if (!p)
		return NULL;
	e->type = fast_type(p, &len);
	e->flags = 0;
	e->reserved = 0;
	e->member = 0;
	e->size = 0;
	e->aux = 0;
	e->stack_hash = 0;
	if (e->type == MT_EVENT_NONE)
		return NULL;
	p += len;
	if (e->type == MT_EVENT_REALLOC && FAST_TEXT(p, "\xa8old_addr")) {
		p = fast_steady_uint(p + 9, &e->aux);
		if (!p)
			return NULL;
		e->flags = MT_EVENT_HAS_OLD;
		fields++;
	}
	p = fast_size(p, e->type != MT_EVENT_FREE, &e->size);
	fields += e->type != MT_EVENT_FREE;
	if (fields < claimed && e->type != MT_EVENT_FREE && p) {
		p = FAST_TEXT(p, "\xaastack_hash");
		p = fast_uint(p, &e->stack_hash);
		fields++;
	}
	return fields == claimed ? p : NULL;
}

int mt_frame_dec_run(struct mt_frame_dec *dec, const uint8_t *content, size_t len,
		     struct mt_decoded *ret)
{
	const uint8_t *p = content, *end = content + len;
	size_t n = 0;
	int err = 0;

	*ret = (struct mt_decoded){ 0 };
	mt_frame_dec_reset(dec);
	while (p < end && n < MT_BATCH_EVENTS && dec->arena_used < ARENA_BATCH) {
		struct mt_event *e = &dec->events[n];
		const uint8_t *next = end - p >= FAST_ROOM ? decode_fast(p, e) : NULL;

		if (!next) {
			struct mt_mp_cursor c = { p, end };

			if (end - p > MT_EVENT_BYTES_MAX)
				c.end = p + MT_EVENT_BYTES_MAX;
			err = mt_frame_dec_general(dec, &c, e, ret);
			if (err == -EAGAIN && c.end - p == MT_EVENT_BYTES_MAX) {
				ret->why = "an event is larger than 16 MiB";
				err = -EBADMSG;
			}
			if (err)
				break;
			next = c.p;
		}
		n += e->type != MT_EVENT_NONE;
		p = next;
	}
	ret->events = dec->events;
	ret->n = n;
	ret->consumed = (size_t)(p - content);
	return err;
}

static struct mt_frame_dec *new_dec(bool large)
{
	struct mt_frame_dec *dec = aligned_alloc(HUGE_PAGE, DEC_BYTES);

	if (!dec)
		return NULL;
	/* Before the first touch. Without huge pages it is as good, only slower. */
	if (large)
		(void)madvise(dec, DEC_BYTES, MADV_HUGEPAGE);
	dec->arena = NULL;
	dec->arena_used = 0;
	return dec;
}

struct mt_frame_dec *mt_frame_dec_new(void)
{
	return new_dec(false);
}

struct mt_frame_dec *mt_frame_dec_new_large(void)
{
	return new_dec(true);
}

void mt_frame_dec_free(struct mt_frame_dec *dec)
{
	if (!dec)
		return;
	mt_frame_dec_reset(dec);
	free(dec->arena);
	free(dec);
}
