/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/event_search.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "common/artifact_filter.h"
#include "common/frame_dec_general.h"

/*
 * Vectors of the compiler: AVX2 where the processor has it, else SSE2 on x86-64, NEON on aarch64,
 * and plain words where a processor has none of them. 64 bytes are looked at together, so that the
 * test whether there was anything costs little.
 */
typedef uint8_t v16 __attribute__((vector_size(16)));
typedef uint8_t v32 __attribute__((vector_size(32)));

#if defined(__x86_64__) && !defined(MT_NO_CPU_DISPATCH)
#define HAVE_WIDE 1
#else
#define HAVE_WIDE 0
#endif

enum { STRIDE = 64, FETCHED = 8 * STRIDE };

/* Backwards from "type": so long is what stands in front of it at most, and at least. */
enum {
	BEFORE_MAX = 1 + 4 + 9 + 4 + 9 + 10 + 9 + 5 + 9 + 5,
	BEFORE_MIN = 1 + 4 + 1 + 4 + 1 + 10 + 1 + 5 + 1 + 5,
};

/* Written once, to be compiled into each function that calls it, for that one's processor. */
#define SEARCH_LOOP static inline __attribute__((always_inline))

/*
 * Not 0 in each byte at which one of the pairs "Fo", "Ex", "St", "pp" may begin. Classes of bytes
 * take the place of some comparisons: the first three letters are of the form 010x0xxx, x, t and p
 * of 0111xx00. What that lets through besides is sorted out by the needles.
 */
#define CANDIDATES(vec, first, second)                                 \
	(((vec)(((first)&0xe8) == 0x40) &                              \
	  ((vec)(((second)&0xf3) == 0x70) | (vec)((second) == 'o'))) | \
	 ((vec)((first) == 'p') & (vec)(((second)&0xf3) == 0x70)))

static inline uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

enum {
	WORD_FORK = 0x6b726f46, /* "Fork" */
	WORD_EXEC = 0x63657845, /* "Exec" */
	WORD_EXIT = 0x74697845, /* "Exit" */
	WORD_STAC = 0x63617453, /* "Stac" */
	WORD_PPIN = 0x6e697070, /* "ppin", of Mapping */
};

static inline bool is_needle(uint32_t word)
{
	return word == WORD_FORK || word == WORD_EXEC || word == WORD_EXIT || word == WORD_STAC ||
	       word == WORD_PPIN;
}

SEARCH_LOOP v16 candidates(const uint8_t *p)
{
	v16 first, second;

	memcpy(&first, p, sizeof(first));
	memcpy(&second, p + 1, sizeof(second));
	return CANDIDATES(v16, first, second);
}

/* The same for twice as many. (Results in memory: their registers are not everybody's.) */
SEARCH_LOOP void wide_candidates(const uint8_t *p, v32 *ret)
{
	v32 first, second;

	memcpy(&first, p, sizeof(first));
	memcpy(&second, p + 1, sizeof(second));
	*ret = CANDIDATES(v32, first, second);
}

SEARCH_LOOP bool any_in(const uint8_t *p, bool wide)
{
	uint64_t part[4] = { 0 };

	if (wide) {
		v32 low, high;

		wide_candidates(p, &low);
		wide_candidates(p + sizeof(v32), &high);
		low |= high;
		memcpy(part, &low, sizeof(low));
	} else {
		v16 all = candidates(p) | candidates(p + 16) | candidates(p + 32) |
			  candidates(p + 48);

		memcpy(part, &all, sizeof(all));
	}
	return part[0] | part[1] | part[2] | part[3];
}

/* The first needle that begins in these bytes, which have 3 more behind them; STRIDE: none. */
static __attribute__((noinline)) size_t needle_in(const uint8_t *p)
{
	for (size_t i = 0; i < STRIDE; i += sizeof(v16)) {
		v16 found = candidates(p + i);
		uint64_t part[2];

		memcpy(part, &found, sizeof(part));
		for (unsigned int half = 0; half < 2; half++) {
			/* The lowest byte that is not 0 is the first candidate. */
			for (uint64_t left = le64toh(part[half]); left;) {
				unsigned int byte = (unsigned int)__builtin_ctzll(left) / 8;

				if (is_needle(word_at(p + i + half * 8 + byte)))
					return i + half * 8 + byte;
				left &= ~((uint64_t)0xff << byte * 8);
			}
		}
	}
	return STRIDE;
}

SEARCH_LOOP size_t search_place(const uint8_t *content, size_t len, size_t at, bool wide)
{
	/* From the second step on at whole cache lines. */
	for (size_t step = STRIDE - ((uintptr_t)(content + at) & (STRIDE - 1));
	     len - at >= STRIDE + 4; at += step, step = STRIDE) {
		size_t place;

		if (__builtin_expect(!any_in(content + at, wide), 1))
			continue;
		place = needle_in(content + at);
		if (place != STRIDE)
			return at + place;
	}
	for (; at + 4 <= len; at++)
		if (is_needle(word_at(content + at)))
			return at;
	return len;
}

size_t mt_event_search_place_plain(const uint8_t *content, size_t len, size_t at)
{
	return search_place(content, len, at, false);
}

#if HAVE_WIDE
__attribute__((target("avx2"))) static size_t search_place_wide(const uint8_t *content, size_t len,
								size_t at)
{
	return search_place(content, len, at, true);
}
#endif

size_t mt_event_search_place(const uint8_t *content, size_t len, size_t at)
{
#if HAVE_WIDE
	if (__builtin_cpu_supports("avx2"))
		return search_place_wide(content, len, at);
#endif
	return mt_event_search_place_plain(content, len, at);
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

/* The header in front of the name that the needle at `place` is part of, or NULL. */
static const uint8_t *name_of(const uint8_t *content, const uint8_t *place, const uint8_t *end)
{
	switch (word_at(place)) {
	case WORD_FORK:
	case WORD_EXEC:
	case WORD_EXIT:
		return place > content && place[-1] == 0xa4 ? place - 1 : NULL;
	case WORD_STAC:
		return place > content && place[-1] == 0xa5 && end - place > 4 && place[4] == 'k'
			       ? place - 1
			       : NULL;
	default:
		return place - content >= 3 && !memcmp(place - 3, "\xa7Ma", 3) ? place - 3 : NULL;
	}
}

/*
 * Steps over a Stack event, whatever is in it. False: it is not quite as one expects, which is for
 * the walk.
 */
static bool skip_stack(struct mt_mp_cursor *c)
{
	struct mt_mp_object map, key;
	uint32_t types = 0;

	if (mt_mp_next(c, &map))
		return false;
	for (uint32_t i = 0; i < map.len; i++) {
		if (mt_mp_next(c, &key) || key.type != MT_MP_STR || mt_mp_skip(c))
			return false;
		types += mt_mp_str_is(&key, "type", 4);
	}
	return types == 1;
}

/* A key and the value behind it, which is not an integer. NULL: something else. */
static const uint8_t *key_and_value(const uint8_t *p, const uint8_t *end, const char *key,
				    size_t len)
{
	struct mt_mp_cursor c = { p ? p + len : NULL, end };

	if (!p || (size_t)(end - p) < len || memcmp(p, key, len) || mt_mp_skip(&c))
		return NULL;
	return c.p;
}

#define KEY_AND_VALUE(p, end, key) key_and_value((p), (end), (key), sizeof(key) - 1)

/* The search goes on behind so many bytes: they are fetched while the rest of a Stack is parsed. */
static void fetch(const uint8_t *p)
{
	for (size_t i = 0; i < FETCHED; i += STRIDE)
		__builtin_prefetch(p + i);
}

/*
 * The same, at first as writers make it; `name` is that of its type. A heap with stacks has some
 * hundreds of them in a frame.
 */
static bool skip_usual_stack(struct mt_mp_cursor *c, const uint8_t *name)
{
	const uint8_t *p = name + sizeof("\xa5Stack") - 1;

	if (*c->p != 0x8b)
		return skip_stack(c);
	p = KEY_AND_INT(p, c->end, "\xa4hash");
	p = KEY_AND_INT(p, c->end, "\xa2sp");
	p = KEY_AND_VALUE(p, c->end, "\xa4regs");
	p = KEY_AND_VALUE(p, c->end,
			  "\xa5"
			  "bytes");
	if (p)
		fetch(p);
	p = KEY_AND_VALUE(p, c->end,
			  "\xa8"
			  "fp_chain");
	p = KEY_AND_VALUE(p, c->end, "\xa9truncated");
	if (!p)
		return skip_stack(c);
	c->p = p;
	return true;
}

/* The event that begins at the cursor is stepped over, counted, and kept if it is looked for. */
static bool take_event(struct mt_frame_dec *dec, struct mt_mp_cursor *c, const uint8_t *name,
		       struct mt_frame_hint *seen, struct mt_decoded *ret)
{
	struct mt_event *e = &dec->events[ret->n];

	if (name[1] == 'S') {
		seen->stacks++;
		return skip_usual_stack(c, name);
	}
	if (ret->n == MT_BATCH_EVENTS - 1 || mt_frame_dec_general(dec, c, e, ret) ||
	    !(1u << e->type & (MT_EVENT_SEARCHED | 1u << MT_EVENT_EXIT)))
		return false;
	mt_frame_hint_add(seen, e, 1);
	ret->n += e->type != MT_EVENT_EXIT;
	return true;
}

/* Whether the hint can be right about a frame in which this was seen. */
static bool agrees(const struct mt_frame_hint *hint, const struct mt_frame_hint *seen)
{
	return hint->mappings == seen->mappings && hint->forks == seen->forks &&
	       hint->execs == seen->execs && hint->exits == seen->exits &&
	       hint->stacks == seen->stacks &&
	       hint->events >= (uint64_t)seen->events + seen->stacks &&
	       (!seen->events ||
		(hint->first_ns <= seen->first_ns && hint->last_ns >= seen->last_ns));
}

int mt_event_search(struct mt_frame_dec *dec, const uint8_t *content, size_t len,
		    const struct mt_frame_hint *hint, struct mt_decoded *ret, bool *ret_walked)
{
	const uint8_t *end = content + len;
	struct mt_frame_hint seen = { 0 };
	size_t at = 0, known = 0;

	*ret = (struct mt_decoded){ 0 };
	*ret_walked = true;
	mt_frame_dec_reset(dec);
	while ((at = mt_event_search_place(content, len, at)) < len) {
		const uint8_t *name = name_of(content, content + at, end);
		const uint8_t *start = name ? event_start(content, name) : NULL;
		struct mt_mp_cursor c = { start, end };

		/* One that begins inside the last one is none. */
		if (!start || start < content + known || !take_event(dec, &c, name, &seen, ret))
			return mt_frame_dec_run(dec, content, len, ret);
		known = at = (size_t)(c.p - content);
	}
	if (hint && !agrees(hint, &seen))
		return mt_frame_dec_run(dec, content, len, ret);
	*ret_walked = false;
	ret->events = dec->events;
	ret->consumed = len;
	return 0;
}
