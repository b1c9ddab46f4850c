/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/fused_plan.h"

#include <endian.h>
#include <string.h>

#include "common/fused_cpu.h"

/*
 * The content of a frame is msgpack, and most of an event's bytes stood in an
 * earlier event already. A compressor is given all bytes and finds that out by
 * searching. Here it is known beforehand which event to look at and which
 * bytes can differ, so the bytes are never made: what goes into the frame is
 * worked out from the events' numbers.
 *
 * Of a zstd block we use two parts. One is literals: bytes as they are. The
 * other is sequences, orders to the decoder of the kind "take L literals, then
 * copy M bytes from D bytes back in your output". Below is a Malloc of 32 bytes
 * under an earlier one of the same thread and size, which begins 1,200 bytes
 * before it. Keys and names are shown as text, all else in hex; what differs is
 * marked:
 *
 *   86 pid 07 tid 08 timestamp cf 0000048c27395a11 addr cf 00007f0122334450 type Malloc size 20
 *                                             ^^^^                     ^^^^
 *   86 pid 07 tid 08 timestamp cf 0000048c273982c3 addr cf 00007f0122339c10 type Malloc size 20
 *   |------------------- 1 ------------------|    |-------- 2 --------|    |-------- 3 -------|
 *
 *   sequence 1: no literal,      copy 28 bytes from 1,200 back
 *   sequence 2: literals 82 c3,  copy 12 bytes from as far back as before
 *   sequence 3: literals 9c 10,  copy 18 bytes from as far back as before
 *
 * These are 4 literals and 3 sequences for 62 bytes. How many bits a sequence
 * takes depends on how frequent its numbers are in the block; "as far back as
 * before" is the most frequent distance of all and takes a fraction of a bit.
 *
 * Shape. This works because both events have each field at the same place.
 * That is so if they agree in all that decides the layout: the thread, the
 * type, which of the optional fields are there, and how many bytes msgpack
 * takes for each integer. We call this the shape and keep it as a number, so
 * that one comparison decides. Equal shapes also mean that integers which
 * differ do so in their low bytes only, which stand last: how many bytes are
 * literals is told by the length of the two numbers' XOR.
 *
 * Which earlier event. Two small tables are asked, and the frame's events are
 * entered in both: the last event of this shape with the same size and stack
 * hash, so that as a rule only the timestamp and addresses differ; and the last
 * of this shape. A bad guess costs bytes, never correctness: what was found is
 * used only if its shape is equal, and every field is compared.
 *
 * If neither has one within the window, the event is laid over one of another
 * shape, loosely: the last that has the same type and optional fields, or has
 * this shape in another thread. Between such two only the texts are the same;
 * since numbers take more bytes here and fewer there, each text may be at a
 * distance of its own, which costs a byte or two. Where a number is as long in
 * both, its first bytes are in the match too. What is left, the first events
 * of their kind and rare types, is compared byte by byte (fused_slow.c).
 *
 * Runs. A match that ends an event and one that begins the next from the same
 * distance are one match: so a stream that repeats itself becomes very small.
 *
 * Sums. An event's length and shape are sums over its parts: each integer adds
 * its bytes to the low 8 bits, and 1 to 5 for its form to the three bits that
 * belong to its field. Absent fields add 0.
 *
 *   bit 0         8      12    15     18     21    24    27
 *   +-------------+------+-----+------+------+-----+------+
 *   | length      | type | ts  | addr | size | old | hash |
 *   +-------------+------+-----+------+------+-----+------+
 *
 * A mark keeps the shape without the length, and with the number of the thread
 * in its upper 13 bits.
 */

enum {
	TEXT_ADDR = 5,			      /* "a4addr" */
	TEXT_OLD = 9,			      /* "a8old_addr" */
	TEXT_SIZE = 5,			      /* "a4size" */
	TEXT_HASH = 11,			      /* "aastack_hash" */
	THREAD_SHIFT = MT_FUSED_THREAD_SHIFT, /* of the thread's number in a shape */
	THREADS_MAX = 1 << 13		      /* and how many numbers there are */
};

/* What a type has after addr. */
struct rule {
	uint64_t size_mask; /* all bits if there is a size; and so on */
	uint64_t old_mask;
	uint64_t hash_mask;
	uint32_t text; /* bytes of "a4type", the type's name and "a4size"; 0: byte by byte */
};

#define TYPE_TEXT(name) (5 + 1 + sizeof(name) - 1)
#define ALL		(~(uint64_t)0)

/* By whatever stands in an event's type. */
static const struct rule rules[UINT8_MAX + 1] = {
	[MT_EVENT_MALLOC] = { ALL, 0, ALL, TYPE_TEXT("Malloc") + TEXT_SIZE },
	[MT_EVENT_CALLOC] = { ALL, 0, ALL, TYPE_TEXT("Calloc") + TEXT_SIZE },
	[MT_EVENT_ALIGNED_ALLOC] = { ALL, 0, ALL, TYPE_TEXT("AlignedAlloc") + TEXT_SIZE },
	[MT_EVENT_REALLOC] = { ALL, ALL, ALL, TYPE_TEXT("Realloc") + TEXT_SIZE },
	[MT_EVENT_FREE] = { 0, 0, 0, TYPE_TEXT("Free") },
	[MT_EVENT_EXEC] = { 0, 0, 0, TYPE_TEXT("Exec") },
	[MT_EVENT_EXIT] = { 0, 0, 0, TYPE_TEXT("Exit") },
	[MT_EVENT_MMAP] = { ALL, 0, 0, TYPE_TEXT("Mmap") + TEXT_SIZE },
	[MT_EVENT_MUNMAP] = { ALL, 0, 0, TYPE_TEXT("Munmap") + TEXT_SIZE },
	[MT_EVENT_BRK] = { ALL, 0, 0, TYPE_TEXT("Brk") + TEXT_SIZE },
};

/*
 * What a field adds to the sum, by its leading zeroes. (0 is written as 1 is, so
 * that it has not 64 of them.) Its length includes the text of its key, but for
 * the keys that are counted elsewhere.
 */
#define FORM(shift, form, bytes) ((bytes) | (uint32_t)(form) << (shift))
#define FORMS(shift, text)                                                               \
	{                                                                                \
		[57 ... 63] = FORM(shift, 1, text + 1), [56] = FORM(shift, 2, text + 2), \
			[48 ... 55] = FORM(shift, 3, text + 3),                          \
			[32 ... 47] = FORM(shift, 4, text + 5),                          \
			[0 ... 31] = FORM(shift, 5, text + 9),                           \
	}

enum field { FIELD_TIMESTAMP, FIELD_ADDR, FIELD_SIZE, FIELD_OLD, FIELD_HASH, FIELDS };

static const uint32_t forms[FIELDS][64] = {
	[FIELD_TIMESTAMP] = FORMS(12, 0),    [FIELD_ADDR] = FORMS(15, TEXT_ADDR),
	[FIELD_SIZE] = FORMS(18, 0),	     [FIELD_OLD] = FORMS(21, TEXT_OLD),
	[FIELD_HASH] = FORMS(24, TEXT_HASH),
};

MT_FUSED_LOOP uint32_t form_of(enum field field, uint64_t v)
{
	return forms[field][__builtin_clzll(v | 1)];
}

MT_FUSED_LOOP uint32_t length_of(uint32_t form)
{
	return form & 0xff;
}

static uint32_t signed_bytes(int32_t v)
{
	if (v >= 0)
		return length_of(form_of(FIELD_SIZE, (uint64_t)v));
	return v >= -32 ? 1 : v >= INT8_MIN ? 2 : v >= INT16_MIN ? 3 : 5;
}

MT_FUSED_LOOP uint64_t thread_ids(const struct mt_event *e)
{
	return (uint32_t)e->pid | (uint64_t)(uint32_t)e->tid << 32;
}

static __attribute__((noinline)) void
add_thread(struct mt_fused_plan *plan, struct mt_fused_thread *slot, const struct mt_event *e)
{
	slot->ids = thread_ids(e);
	slot->len = 1 + 4 + signed_bytes(e->pid) + 4 + signed_bytes(e->tid) + 10;
	slot->shape = 0;
	/* A thread that lost its slot and comes again is a new one: its old events are not found.
	 */
	if (++plan->threads_n < THREADS_MAX)
		slot->shape = plan->threads_n << THREAD_SHIFT;
}

MT_FUSED_LOOP struct mt_fused_thread *thread_slot(struct mt_fused_plan *plan, uint64_t ids)
{
	return &plan->threads[(ids * 0x9e3779b97f4a7c15u) >> (64 - MT_FUSED_THREADS_LOG)];
}

MT_FUSED_LOOP const struct mt_fused_thread *find_thread(struct mt_fused_plan *plan,
							const struct mt_event *e)
{
	struct mt_fused_thread *slot = thread_slot(plan, thread_ids(e));

	if (__builtin_expect(slot->ids != thread_ids(e), 0))
		add_thread(plan, slot, e);
	return slot;
}

/*
 * One field laid over its like. `len` is what it takes with the text since the
 * field before: all but its low bytes goes to the growing sequence. If the
 * numbers differ, that one is sealed, and the next begins with those bytes.
 */
MT_FUSED_LOOP void lay_field(struct mt_fused_out *out, uint32_t len, uint64_t mine, uint64_t theirs)
{
	uint32_t zeroes, low;
	uint64_t be;

	out->match += len;
	if (mine == theirs)
		return;
	zeroes = (uint32_t)__builtin_clzll(mine ^ theirs);
	low = 8 - zeroes / 8;
	be = htobe64(mine << (zeroes & 56));
	memcpy(out->lit, &be, sizeof(be));
	out->match -= low;
	*out->seq++ = mt_fused_seal(out);
	out->lit += low;
	out->lits = low;
	out->match = 0;
	mt_fused_out_repeat(out);
}

/* The first match of an event begins. Literals of the event before may wait for it. */
MT_FUSED_LOOP void begin_match(struct mt_fused_out *out, uint32_t dist)
{
	if (__builtin_expect(dist == out->dist, 0)) {
		mt_fused_out_match(out, dist, 0);
		return;
	}
	mt_fused_out_end(out);
	mt_fused_out_distance(out, dist);
}

MT_FUSED_LOOP uint16_t *exact_slot(struct mt_fused_plan *plan, uint32_t shape, uint64_t size,
				   uint64_t hash)
{
	uint64_t key = (size * 0xd6e8feb86659fd93u) ^ hash ^ shape;

	return &plan->exact[(key * 0x9e3779b97f4a7c15u) >> (64 - MT_FUSED_EXACT_LOG)];
}

MT_FUSED_LOOP uint16_t *near_slot(struct mt_fused_plan *plan, uint32_t shape)
{
	return &plan->near[(uint32_t)(shape * 0x9e3779b1u) >> (32 - MT_FUSED_NEAR_LOG)];
}

/* An integer as the serializer packs it. */
struct number {
	uint64_t v;
	uint32_t len; /* 0: there is none */
	uint32_t negative;
};

MT_FUSED_LOOP struct number number_of(uint64_t v)
{
	return (struct number){ .v = v, .len = length_of(form_of(FIELD_SIZE, v)) };
}

MT_FUSED_LOOP struct number number_of_signed(int32_t v)
{
	return (struct number){ .v = (uint64_t)(int64_t)v,
				.len = signed_bytes(v),
				.negative = v < 0 };
}

/* The general match of mt_fused_out_match(), for at least 4 bytes. */
MT_FUSED_LOOP void loose_match(struct mt_fused_out *out, uint32_t dist, uint32_t len)
{
	uint64_t repeat;

	if (__builtin_expect(out->match != 0, 0)) {
		if (dist == out->dist) {
			out->match += len;
			return;
		}
		mt_fused_out_end(out);
	}
	/* Without literals before the match, "as before" would mean another distance. */
	repeat = 0 - (uint64_t)(out->lits && dist == out->dist);
	mt_fused_out_distance(out, dist);
	out->offset_part ^= (out->offset_part ^ MT_SEQ_REPEAT) & repeat;
	out->offset_low &= ~repeat;
	out->match = len;
}

/*
 * One field where the layouts may differ: `text` bytes of its key and of what is before that are a
 * match, `dist` bytes back; of the value what is equal from its first byte on, if both are as long.
 * The rest are literals. Returns how far back the text behind the value is. Masks take the place of
 * branches that would be guessed wrong as often as right.
 */
MT_FUSED_LOOP uint32_t lay_loose(struct mt_fused_out *out, uint32_t text, struct number mine,
				 struct number theirs, uint32_t dist)
{
	static const uint8_t marks[2][10] = { { 0, 0, 0xcc, 0xcd, 0, 0xce, 0, 0, 0, 0xcf },
					      { 0, 0, 0xd0, 0xd1, 0, 0xd2, 0, 0, 0, 0 } };
	uint64_t differ = mine.v ^ theirs.v;
	uint32_t low = (8 - (uint32_t)__builtin_clzll(differ | 1) / 8) & -(uint32_t)(differ != 0);
	uint32_t same = -(uint32_t)((mine.len == theirs.len) & (mine.negative == theirs.negative));
	/* Literals: a first byte that tells the form, unless it is in the match, and low bytes. */
	uint32_t mark = (uint32_t)(mine.len > 1) & ~same;
	uint32_t bytes = (low & same) | ((mine.len - mark) & ~same);
	uint64_t be = htobe64(mine.v << ((64 - 8 * bytes) & 63));

	loose_match(out, dist, text + ((mine.len - low) & same));
	memcpy(out->lit + mark, &be, sizeof(be));
	/* Without a mark it goes where it does no harm. */
	out->lit[(mark - 1) & 15] = marks[mine.negative][mine.len];
	if (mark + bytes) {
		mt_fused_out_end(out);
		out->lits = mark + bytes;
		out->lit += mark + bytes;
	}
	return dist + mine.len - theirs.len;
}

/* Where planning stands; in variables of its own, since all that is written may be the plan. */
struct cursor {
	const struct mt_event *event;
	uint32_t pos;
	uint32_t number;
};

/* What decides the layout of an event and is no width. */
struct parts {
	const struct rule *rule;
	uint64_t size;
	uint64_t hash;	  /* 0: it has none */
	uint64_t has_old; /* not 0: it has one */
};

MT_FUSED_LOOP uint16_t *parts_slot(struct mt_fused_plan *plan, uint8_t type,
				   const struct parts *parts)
{
	return &plan->of_parts[type * 4u + (parts->has_old != 0) * 2u + (parts->hash != 0)];
}

/* How far back that event is, if it is one and has this shape but for the thread; else too far. */
MT_FUSED_LOOP uint32_t alike_dist(const struct mt_fused_plan *plan, uint32_t number, uint32_t shape,
				  uint32_t pos)
{
	uint32_t other = (uint32_t)(plan->marks[number] >> 32);

	if (!number || (shape ^ other) << (32 - THREAD_SHIFT))
		return UINT32_MAX;
	return pos - MT_FUSED_MARK_POS(plan->marks[number]);
}

/*
 * An event laid over one of another thread or with other widths: the last of the same shape, or the
 * last that has the same parts. Returns false when there is none in the window.
 */
MT_FUSED_LOOP bool plan_loose(struct mt_fused_plan *plan, struct mt_fused_out *out,
			      const struct cursor *at, uint32_t shape, uint32_t ids_end,
			      const struct parts *parts)
{
	const struct mt_event *e = at->event, *r;
	uint16_t *alike = mt_fused_alike(plan, shape, ids_end);
	uint16_t *like = parts_slot(plan, e->type, parts);
	uint32_t number = *alike, text = parts->rule->text;
	uint32_t dist = alike_dist(plan, number, shape, at->pos);

	/* Within an event the distance grows by less than 64. */
	if (dist > MT_FUSED_WINDOW - 64) {
		number = *like;
		dist = at->pos - MT_FUSED_MARK_POS(plan->marks[number]);
	}
	*like = (uint16_t)at->number;
	if (!number || dist > MT_FUSED_WINDOW - 64)
		return false;
	*alike = (uint16_t)at->number;
	r = &plan->events[number - 1];
	dist = lay_loose(out, 1 + 4, number_of_signed(e->pid), number_of_signed(r->pid), dist);
	dist = lay_loose(out, 4, number_of_signed(e->tid), number_of_signed(r->tid), dist);
	dist = lay_loose(out, 10, number_of(e->timestamp_ns), number_of(r->timestamp_ns), dist);
	dist = lay_loose(out, TEXT_ADDR, number_of(e->addr), number_of(r->addr), dist);
	if (parts->has_old) {
		dist = lay_loose(out, text - TEXT_SIZE + TEXT_OLD, number_of(e->aux),
				 number_of(r->aux), dist);
		text = TEXT_SIZE;
	}
	if (parts->rule->size_mask)
		dist = lay_loose(out, text, number_of(e->size), number_of(r->size), dist);
	else
		loose_match(out, dist, text);
	if (parts->hash)
		(void)lay_loose(out, TEXT_HASH, number_of(e->stack_hash), number_of(r->stack_hash),
				dist);
	return true;
}

static __attribute__((noinline)) int plan_slow(struct mt_fused_plan *plan, struct mt_fused_out *out,
					       struct cursor *at, uint32_t shape)
{
	int ret;

	plan->out = *out;
	plan->pos = at->pos;
	plan->next = at->number - 1;
	ret = mt_fused_plan_slow(plan, shape);
	*out = plan->out;
	at->pos = plan->pos;
	return ret;
}

/* Plans one event, but does not step over it. Returns as mt_fused_plan_block() does. */
MT_FUSED_LOOP int plan_event(struct mt_fused_plan *plan, struct mt_fused_out *out,
			     struct cursor *at)
{
	const struct mt_event *e = at->event, *r;
	const struct rule *rule = &rules[e->type];
	const struct mt_fused_thread *thread = find_thread(plan, e);
	uint64_t size = e->size & rule->size_mask, hash = e->stack_hash & rule->hash_mask;
	uint64_t has_old = rule->old_mask & -(uint64_t)(e->flags & MT_EVENT_HAS_OLD);
	uint32_t ts_form = form_of(FIELD_TIMESTAMP, e->timestamp_ns);
	uint32_t addr_form = form_of(FIELD_ADDR, e->addr);
	uint32_t size_form = form_of(FIELD_SIZE, size) & (uint32_t)rule->size_mask;
	uint32_t old_form = has_old ? form_of(FIELD_OLD, e->aux) : 0;
	uint32_t hash_form = hash ? form_of(FIELD_HASH, hash) : 0;
	uint32_t sum = ts_form + addr_form + size_form + old_form + hash_form;
	uint32_t shape = (sum >> 8) + e->type + thread->shape, found;
	uint16_t *exact = exact_slot(plan, shape, size, hash), *near = near_slot(plan, shape);
	uint64_t mark = MT_FUSED_MARK(shape, at->pos), dist;

	/* One number tells both: another shape makes the distance huge. */
	found = *exact;
	dist = mark - plan->marks[found];
	if (dist > MT_FUSED_WINDOW) {
		found = *near;
		dist = mark - plan->marks[found];
	}
	if (__builtin_expect(!rule->text, 0))
		return plan_slow(plan, out, at, 0);
	if (__builtin_expect(!thread->shape || dist > MT_FUSED_WINDOW, 0)) {
		const struct parts parts = { rule, size, hash, has_old };

		if (thread->shape)
			*exact = *near = (uint16_t)at->number;
		if (!plan_loose(plan, out, at, shape, thread->len - 10, &parts))
			return plan_slow(plan, out, at, shape);
		plan->marks[at->number] = mark;
		at->pos += thread->len + length_of(sum) + rule->text;
		return 0;
	}
	*exact = *near = (uint16_t)at->number;
	plan->marks[at->number] = mark;
	r = &plan->events[found - 1];
	begin_match(out, (uint32_t)dist);
	lay_field(out, thread->len + length_of(ts_form), e->timestamp_ns, r->timestamp_ns);
	lay_field(out, length_of(addr_form), e->addr, r->addr);
	out->match += rule->text;
	if (has_old) {
		out->match -= TEXT_SIZE;
		lay_field(out, length_of(old_form), e->aux, r->aux);
		out->match += TEXT_SIZE;
	}
	lay_field(out, length_of(size_form), size, r->size & rule->size_mask);
	if (hash)
		lay_field(out, length_of(hash_form), hash, r->stack_hash);
	at->pos += thread->len + length_of(sum) + rule->text;
	return 0;
}

MT_FUSED_LOOP int plan_block(struct mt_fused_plan *plan, uint8_t *lit)
{
	struct mt_fused_out out = { .seq = plan->seqs, .lit = lit, .dist = plan->out.dist };
	struct cursor at = { plan->events + plan->next, plan->pos, plan->next + 1 };
	uint32_t end = plan->pos + MT_FUSED_BLOCK_TARGET;
	int ret = 0;

	while (!ret && at.number <= plan->n && at.pos < end) {
		ret = plan_event(plan, &out, &at);
		at.event++;
		at.number++;
	}
	mt_fused_out_end(&out);
	plan->out = out;
	plan->pos = at.pos;
	plan->next = at.number - 1;
	return ret;
}

static int plan_block_plain(struct mt_fused_plan *plan, uint8_t *lit)
{
	return plan_block(plan, lit);
}

#if MT_FUSED_HAVE_BITS
MT_FUSED_BITS_CODE static int plan_block_fast(struct mt_fused_plan *plan, uint8_t *lit)
{
	return plan_block(plan, lit);
}
#endif

int mt_fused_plan_block(struct mt_fused_plan *plan, bool cpu_has_bits, uint8_t *lit)
{
#if MT_FUSED_HAVE_BITS
	if (cpu_has_bits)
		return plan_block_fast(plan, lit);
#endif
	(void)cpu_has_bits;
	return plan_block_plain(plan, lit);
}

void mt_fused_plan_begin(struct mt_fused_plan *plan, const struct mt_event *events, size_t n)
{
	plan->events = events;
	plan->n = (uint32_t)n;
	plan->next = 0;
	plan->pos = 0;
	plan->threads_n = 0;
	plan->slow_events = 0;
	plan->out = (struct mt_fused_out){ 0 };
	plan->marks[0] = 0;
	memset(plan->exact, 0, sizeof(plan->exact));
	memset(plan->near, 0, sizeof(plan->near));
	memset(plan->alike, 0, sizeof(plan->alike));
	memset(plan->of_type, 0, sizeof(plan->of_type));
	memset(plan->of_parts, 0, sizeof(plan->of_parts));
	memset(plan->threads, 0, sizeof(plan->threads));
	/* An empty slot holds ids that belong into another one; 0 belongs into the first. */
	thread_slot(plan, 0)->ids = 1;
}
