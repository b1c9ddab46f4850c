/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/event_search.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "common/artifact_filter.h"
#include "common/frame_dec_general.h"

/*
 * Vectors of the compiler: SSE2 on x86-64, NEON on aarch64, and plain words
 * where a processor has neither. 64 bytes are looked at together, so that the
 * test whether there was anything costs little.
 */
typedef uint8_t v16 __attribute__((vector_size(16)));

enum { LANES = 16, STRIDE = 64, AHEAD = 1024 };

/* Backwards from "type": so long is what stands in front of it at most, and at least. */
enum {
	BEFORE_MAX = 1 + 4 + 9 + 4 + 9 + 10 + 9 + 5 + 9 + 5,
	BEFORE_MIN = 1 + 4 + 1 + 4 + 1 + 10 + 1 + 5 + 1 + 5,
};

static inline v16 load(const uint8_t *p)
{
	v16 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Not 0 in each byte at which one of the pairs "Fo", "Ex", "St", "pp" may
 * begin. Classes of bytes take the place of some comparisons: the first three
 * letters are of the form 010x0xxx, x, t and p of 0111xx00. What that lets
 * through besides is sorted out by the needles.
 */
static inline v16 candidates(const uint8_t *p)
{
	v16 first = load(p), second = load(p + 1);
	v16 capital = (v16)((first & 0xe8) == 0x40);
	v16 xtp = (v16)((second & 0xf3) == 0x70);
	v16 o = (v16)(second == 'o');
	v16 pp = (v16)(first == 'p');

	return (capital & (xtp | o)) | (pp & xtp);
}

static inline bool any(v16 v)
{
	uint64_t halves[2];

	memcpy(halves, &v, sizeof(halves));
	return halves[0] | halves[1];
}

static inline uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

enum {
	WORD_FORK = 0x6b726f46, /* "Fork" */
	WORD_EXEC = 0x63657845, /* "Exec" */
	WORD_STAC = 0x63617453, /* "Stac" */
	WORD_PPIN = 0x6e697070, /* "ppin", of Mapping */
};

static inline bool is_needle(uint32_t word)
{
	return word == WORD_FORK || word == WORD_EXEC || word == WORD_STAC || word == WORD_PPIN;
}

/* The first needle that begins in these bytes, which have 3 more behind them; STRIDE: none. */
static __attribute__((noinline)) size_t needle_in(const uint8_t *p, v16 a, v16 b, v16 c, v16 d)
{
	v16 found[STRIDE / LANES] = { a, b, c, d };
	uint8_t lanes[STRIDE];

	memcpy(lanes, found, sizeof(lanes));
	for (size_t i = 0; i < STRIDE; i++)
		if (lanes[i] && is_needle(word_at(p + i)))
			return i;
	return STRIDE;
}

size_t mt_event_search_place(const uint8_t *content, size_t len, size_t at)
{
	while (len - at >= STRIDE + 4) {
		const uint8_t *p = content + at;
		v16 a = candidates(p), b = candidates(p + LANES);
		v16 c = candidates(p + 2 * LANES), d = candidates(p + 3 * LANES);

		/* The content has just been written, but it is larger than the nearest caches. */
		__builtin_prefetch(p + AHEAD);
		if (any(a | b | c | d)) {
			size_t place = needle_in(p, a, b, c, d);

			if (place != STRIDE)
				return at + place;
		}
		at += STRIDE;
	}
	for (; at + 4 <= len; at++)
		if (is_needle(word_at(content + at)))
			return at;
	return len;
}

/* One key and the integer behind it, in its shortest form or not. NULL: something else. */
static const uint8_t *key_and_int(const uint8_t *p, const uint8_t *end, const char *key, size_t len)
{
	static const uint8_t bytes[8] = { 1, 2, 4, 8, 1, 2, 4, 8 };

	if ((size_t)(end - p) < len + 1 || memcmp(p, key, len))
		return NULL;
	p += len;
	if (*p < 0x80 || *p >= 0xe0)
		return p + 1;
	if (*p < 0xcc || *p > 0xd3 || end - p <= bytes[*p - 0xcc])
		return NULL;
	return p + 1 + bytes[*p - 0xcc];
}

#define KEY_AND_INT(p, end, key) ((p) ? key_and_int((p), (end), (key), sizeof(key) - 1) : NULL)

/* Whether exactly the four numbers stand between the map's first byte and "type". */
static bool is_head(const uint8_t *p, const uint8_t *type)
{
	const uint8_t *q = (*p & 0xf0) == 0x80 ? p + 1 : NULL;

	q = KEY_AND_INT(q, type, "\xa3pid");
	q = KEY_AND_INT(q, type, "\xa3tid");
	q = KEY_AND_INT(q, type, "\xa9timestamp");
	q = KEY_AND_INT(q, type,
			"\xa4"
			"addr");
	return q == type;
}

/* Where the event begins whose type's name, with its header, stands at `name`; NULL if unsure. */
static const uint8_t *event_start(const uint8_t *content, const uint8_t *name)
{
	const uint8_t *type = name - 5, *found = NULL;

	if (name - content < BEFORE_MIN || memcmp(type, "\xa4type", 5))
		return NULL;
	for (size_t back = BEFORE_MIN - 5; back <= BEFORE_MAX - 5; back++) {
		if ((size_t)(type - content) < back)
			break;
		if (!is_head(type - back, type))
			continue;
		if (found)
			return NULL; /* two readings */
		found = type - back;
	}
	return found;
}

/* The header in front of the name that the needle at `place` is part of; NULL for "Stack" too. */
static const uint8_t *name_of(const uint8_t *content, const uint8_t *place)
{
	switch (word_at(place)) {
	case WORD_FORK:
	case WORD_EXEC:
		return place > content && place[-1] == 0xa4 ? place - 1 : NULL;
	case WORD_PPIN:
		return place - content >= 3 && !memcmp(place - 3, "\xa7Ma", 3) ? place - 3 : NULL;
	default:
		return NULL;
	}
}

int mt_event_search(struct mt_frame_dec *dec, const uint8_t *content, size_t len,
		    struct mt_decoded *ret, bool *ret_walked)
{
	const uint8_t *end = content + len;
	size_t at = 0, known = 0, n = 0;

	*ret = (struct mt_decoded){ 0 };
	*ret_walked = false;
	mt_frame_dec_reset(dec);
	while ((at = mt_event_search_place(content, len, at)) < len) {
		const uint8_t *name = name_of(content, content + at);
		const uint8_t *start = name ? event_start(content, name) : NULL;
		struct mt_mp_cursor c = { start, end };
		struct mt_event *e = &dec->events[n];

		/* One that begins inside the last one is none. */
		if (!start || start < content + known || n == MT_BATCH_EVENTS - 1 ||
		    mt_frame_dec_general(dec, &c, e, ret) || !(1u << e->type & MT_EVENT_SEARCHED)) {
			*ret_walked = true;
			return mt_frame_dec_run(dec, content, len, ret);
		}
		n++;
		known = at = (size_t)(c.p - content);
	}
	ret->events = dec->events;
	ret->n = n;
	ret->consumed = len;
	return 0;
}
