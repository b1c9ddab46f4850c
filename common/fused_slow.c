/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "common/fused_plan.h"

/*
 * Events that cannot be laid over another one as fused_plan.c does it: the first
 * of their kind, those of rare types, and those after whose like the window has
 * moved on. They are serialized, and compared with the bytes of the most
 * similar event that is at hand, field by field: wherever the fields of both
 * stand, what they have in common at their begin is a match.
 */

enum {
	FIELDS_MAX = 12,
	TYPE_FIELD = 4,	 /* of an event, from 0: its type */
	FIRST_MATCH = 3, /* the format's shortest match */
	NEW_MATCH = 7	 /* below it, a match at another distance costs more than literals */
};

/*
 * Where the parts of a packed event end: its header byte, and each field. A
 * field with a string is two parts, up to the string and the string.
 */
struct fields {
	uint32_t n;
	uint32_t end[FIELDS_MAX];
};

/* Bytes of an integer, or of the header of a string, whose length goes to *ret_text. */
static uint32_t head_len(const uint8_t *p, uint32_t *ret_text)
{
	*ret_text = 0;
	if (*p >= 0xa0 && *p <= 0xbf) {
		*ret_text = *p & 0x1fu;
		return 1;
	}
	switch (*p) {
	case 0xcc:
	case 0xd0:
		return 2;
	case 0xcd:
	case 0xd1:
		return 3;
	case 0xce:
	case 0xd2:
		return 5;
	case 0xcf:
	case 0xd3:
		return 9;
	case 0xd9:
		*ret_text = p[1];
		return 2;
	case 0xda:
		*ret_text = (uint32_t)p[1] << 8 | p[2];
		return 3;
	default: /* an integer in one byte */
		return 1;
	}
}

/* The event is no Stack: its values are integers and strings. */
static void find_fields(const uint8_t *p, struct fields *ret_fields)
{
	uint32_t n = *p & 0xfu, at = 1, parts = 0, text;

	ret_fields->end[parts++] = 1;
	for (uint32_t i = 0; i < n; i++) {
		at += head_len(p + at, &text);
		at += text;
		at += head_len(p + at, &text);
		/* The name of the type is one part with its key; a path is not. */
		if (i > TYPE_FIELD && text)
			ret_fields->end[parts++] = at;
		at += text;
		ret_fields->end[parts++] = at;
	}
	ret_fields->n = parts;
}

/* Bytes [from, to) of the event that are a match so far, not yet put out. */
struct run {
	uint32_t from;
	uint32_t to;
	uint32_t dist;
};

static void end_run(struct mt_fused_out *out, const uint8_t *bytes, struct run *run)
{
	uint32_t len = run->to - run->from;
	uint32_t least = run->dist == out->dist ? FIRST_MATCH : NEW_MATCH;

	if (len && (len >= least || (out->match && run->dist == out->dist)))
		mt_fused_out_match(out, run->dist, len);
	else
		mt_fused_out_literals(out, bytes + run->from, len);
	run->from = run->to;
}

/* Lays `bytes` over `other`, which begins `dist` bytes earlier in the content. */
static void compare(struct mt_fused_out *out, const uint8_t *bytes, const uint8_t *other,
		    uint32_t dist)
{
	struct fields mine, theirs;
	struct run run = { 0 };
	uint32_t i = 0, end;

	find_fields(bytes, &mine);
	find_fields(other, &theirs);
	for (uint32_t f = 0; f < mine.n; f++) {
		uint32_t j = f < theirs.n ? (f ? theirs.end[f - 1] : 0) : 0;
		uint32_t j_end = f < theirs.n ? theirs.end[f] : 0;
		uint32_t d = dist + i - j;

		if (d != run.dist || run.to != i) {
			end_run(out, bytes, &run);
			run = (struct run){ i, i, d };
		}
		end = mine.end[f];
		if (d <= MT_FUSED_WINDOW) {
			for (; i < end && j < j_end && bytes[i] == other[j]; i++, j++)
				run.to++;
		}
		if (i < end) {
			end_run(out, bytes, &run);
			mt_fused_out_literals(out, bytes + i, end - i);
			i = end;
			run.from = run.to = i;
		}
	}
	end_run(out, bytes, &run);
}

/* The number of the event that is most like the next one; 0 if there is none. */
static uint32_t find_other(const struct mt_fused_plan *plan, uint32_t alike)
{
	const struct mt_event *e = &plan->events[plan->next];
	uint32_t found = alike;

	if (found && plan->pos - MT_FUSED_MARK_POS(plan->marks[found]) <= MT_FUSED_WINDOW)
		return found;
	found = plan->of_type[e->type];
	if (found && plan->pos - MT_FUSED_MARK_POS(plan->marks[found]) <= MT_FUSED_WINDOW)
		return found;
	return plan->next;
}

int mt_fused_plan_slow(struct mt_fused_plan *plan, uint32_t shape)
{
	const struct mt_event *e = &plan->events[plan->next];
	uint32_t number = plan->next + 1, other;
	uint16_t *alike;
	const uint8_t *packed;
	struct fields fields;
	size_t len, other_len;
	int ret;

	if (e->type >= MT_EVENT_TYPES)
		return -EINVAL;
	if (e->type == MT_EVENT_STACK)
		return MT_FUSED_DECLINED;
	if (e->type == MT_EVENT_MAPPING && e->mapping->path_len > MT_FUSED_EVENT_MAX)
		return MT_FUSED_DECLINED;
	ret = mt_frame_enc_serialize(plan->serializer, e, 1, &packed, &len);
	if (ret)
		return ret;
	if (len > MT_FUSED_EVENT_MAX)
		return MT_FUSED_DECLINED;
	memcpy(plan->bytes, packed, len);
	find_fields(plan->bytes, &fields);
	alike = mt_fused_alike(plan, shape | e->type, fields.end[2]);
	other = find_other(plan, *alike);
	if (other) {
		ret = mt_frame_enc_serialize(plan->serializer, &plan->events[other - 1], 1, &packed,
					     &other_len);
		if (ret)
			return ret;
		compare(&plan->out, plan->bytes, packed,
			plan->pos - MT_FUSED_MARK_POS(plan->marks[other]));
	} else {
		mt_fused_out_literals(&plan->out, plan->bytes, (uint32_t)len);
	}
	*alike = (uint16_t)number;
	plan->of_type[e->type] = (uint16_t)number;
	plan->marks[number] = MT_FUSED_MARK(shape, plan->pos);
	plan->pos += (uint32_t)len;
	plan->slow_events++;
	return 0;
}
