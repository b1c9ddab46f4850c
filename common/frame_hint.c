/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/frame_hint.h"

#include <errno.h>
#include <string.h>

#include "common/crc32.h"

static uint8_t *put_le(uint8_t *p, uint64_t v, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		*p++ = (uint8_t)(v >> 8 * i);
	return p;
}

static uint64_t take_le(const uint8_t **p, unsigned int bytes)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < bytes; i++)
		v |= (uint64_t) * (*p)++ << 8 * i;
	return v;
}

/* Nearly all events are of other types: a branch is cheaper than to count them. */
#define COUNTED                                                               \
	(1u << MT_EVENT_MAPPING | 1u << MT_EVENT_FORK | 1u << MT_EVENT_EXEC | \
	 1u << MT_EVENT_EXIT | 1u << MT_EVENT_STACK)

void mt_frame_hint_add(struct mt_frame_hint *hint, const struct mt_event *events, size_t n)
{
	uint32_t counts[MT_EVENT_TYPES] = { 0 };
	uint64_t low = hint->events ? hint->first_ns : UINT64_MAX, high = hint->last_ns;

	if (!n)
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t at = events[i].timestamp_ns;

		if (events[i].type < MT_EVENT_TYPES && COUNTED >> events[i].type & 1)
			counts[events[i].type]++;
		low = at < low ? at : low;
		high = at > high ? at : high;
	}
	hint->events += (uint32_t)n;
	hint->mappings += counts[MT_EVENT_MAPPING];
	hint->forks += counts[MT_EVENT_FORK];
	hint->execs += counts[MT_EVENT_EXEC];
	hint->exits += counts[MT_EVENT_EXIT];
	hint->stacks += counts[MT_EVENT_STACK];
	hint->first_ns = low;
	hint->last_ns = high;
}

static uint8_t *put_payload(const struct mt_frame_hint *hint, uint8_t *p)
{
	p = put_le(p, hint->frame_len, 8);
	p = put_le(p, hint->events, 4);
	p = put_le(p, hint->mappings, 4);
	p = put_le(p, hint->forks, 4);
	p = put_le(p, hint->execs, 4);
	p = put_le(p, hint->exits, 4);
	p = put_le(p, hint->stacks, 4);
	p = put_le(p, hint->first_ns, 8);
	return put_le(p, hint->last_ns, 8);
}

/* The head of a frame whose payload is there. */
static void put_head(uint8_t *out, unsigned int version, uint32_t payload_len)
{
	uint8_t *p = put_le(out, MT_META_MAGIC, 4);

	p = put_le(p, MT_META_HEAD + payload_len, 4);
	memcpy(p, MT_META_TAG, 4);
	p = put_le(p + 4, version, 1);
	p = put_le(p, MT_META_HINT, 1);
	p = put_le(p, 0, 2);
	(void)put_le(p, mt_crc32(out + MT_SKIPPABLE_HEAD + MT_META_HEAD, payload_len), 4);
}

void mt_frame_hint_write(const struct mt_frame_hint *hint, uint8_t out[MT_FRAME_HINT_BYTES])
{
	(void)put_payload(hint, out + MT_SKIPPABLE_HEAD + MT_META_HEAD);
	put_head(out, MT_META_VERSION, MT_FRAME_HINT_PAYLOAD);
}

void mt_frame_hint_write_checked(const struct mt_frame_hint *hint,
				 uint8_t out[MT_CHECKED_HINT_BYTES])
{
	uint8_t *p = put_payload(hint, out + MT_SKIPPABLE_HEAD + MT_META_HEAD);

	(void)put_le(p, hint->crc, 4);
	put_head(out, MT_HINT_VERSION_CHECKED, MT_FRAME_HINT_PAYLOAD + 4);
}

int mt_frame_hint_parse(const uint8_t *inside, size_t len, struct mt_frame_hint *ret_hint)
{
	struct mt_frame_hint h;
	const uint8_t *p = inside + 8;
	uint32_t payload_len;
	uint64_t crc;

	if (len < MT_META_HEAD || memcmp(inside, MT_META_TAG, 4) || inside[5] != MT_META_HINT ||
	    (inside[4] != MT_META_VERSION && inside[4] != MT_HINT_VERSION_CHECKED))
		return -ENOENT;
	h.has_crc = inside[4] == MT_HINT_VERSION_CHECKED;
	payload_len = MT_FRAME_HINT_PAYLOAD + (h.has_crc ? 4 : 0);
	crc = take_le(&p, 4);
	if (len != MT_META_HEAD + payload_len || crc != mt_crc32(p, payload_len))
		return -EBADMSG;
	h.frame_len = take_le(&p, 8);
	h.events = (uint32_t)take_le(&p, 4);
	h.mappings = (uint32_t)take_le(&p, 4);
	h.forks = (uint32_t)take_le(&p, 4);
	h.execs = (uint32_t)take_le(&p, 4);
	h.exits = (uint32_t)take_le(&p, 4);
	h.stacks = (uint32_t)take_le(&p, 4);
	h.first_ns = take_le(&p, 8);
	h.last_ns = take_le(&p, 8);
	h.crc = h.has_crc ? (uint32_t)take_le(&p, 4) : 0;
	*ret_hint = h;
	return 0;
}

bool mt_frame_hint_equal(const struct mt_frame_hint *a, const struct mt_frame_hint *b)
{
	return a->frame_len == b->frame_len && a->events == b->events &&
	       a->mappings == b->mappings && a->forks == b->forks && a->execs == b->execs &&
	       a->exits == b->exits && a->stacks == b->stacks && a->first_ns == b->first_ns &&
	       a->last_ns == b->last_ns;
}

bool mt_frame_hint_may_hold(const struct mt_frame_hint *hint, uint32_t types, uint64_t from_ns,
			    uint64_t to_ns)
{
	uint64_t others =
		(uint64_t)hint->mappings + hint->forks + hint->execs + hint->exits + hint->stacks;

	if (!hint->events || hint->last_ns < from_ns || hint->first_ns > to_ns)
		return false;
	/* More of the counted ones than events in all is a lie; the frame is read and says so. */
	if (others > hint->events || (types & ~COUNTED && others < hint->events))
		return true;
	return (types & 1u << MT_EVENT_MAPPING && hint->mappings) ||
	       (types & 1u << MT_EVENT_FORK && hint->forks) ||
	       (types & 1u << MT_EVENT_EXEC && hint->execs) ||
	       (types & 1u << MT_EVENT_EXIT && hint->exits) ||
	       (types & 1u << MT_EVENT_STACK && hint->stacks);
}
