/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/fused_plan.h"

#include <endian.h>
#include <errno.h>
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
 * copy M bytes from D bytes back in your output". Below is a Malloc and, over
 * it, an earlier one of the same thread, size and call site, D bytes before.
 * The lines of dots are where both are equal:
 *
 *   86 a3pid 07 a3tid 08 a9timestamp cf 00000011 2233 4401 a4addr cf 00007f01 2233 4450 a4type
 * a6Malloc a4size 20
 *   .............................................. ^^^^^^^ .................... ^^^^^^^
 * ......................... 86 a3pid 07 a3tid 08 a9timestamp cf 00000011 2233 59a7 a4addr cf
 * 00007f01 2233 9c10 a4type a6Malloc a4size 20
 *
 *   sequence 1: no literals,  copy everything up to 2233 from D back
 *   sequence 2: literals 59a7, copy " a4addr cf 00007f01 2233" from as far back as before
 *   sequence 3: literals 9c10, copy the rest from as far back as before
 *
 * These are 4 literals and 3 orders for 68 bytes. An order is packed by how
 * frequent its numbers are; "as far back as before" is the most frequent
 * distance of all and costs a fraction of a bit.
 *
 * Shape. This works because both events have each field at the same place.
 * That is so if they agree in all that decides the layout: the thread, the
 * type, which of the optional fields are there, and how many bytes msgpack
 * takes for each integer. We call this the shape and keep it as a number, so
 * that one comparison decides. Equal shapes also mean that integers which
 * differ do so in their low bytes only, which stand last: the number of bytes
 * to give as literals is the length of the two numbers' XOR.
 *
 * Which earlier event. Two small tables are asked, and the frame's events are
 * entered in both: the last event of this shape with the same size and stack
 * hash (then only timestamp, addresses and nothing else differ), and the last
 * of this shape. If neither has one within the window, the event is compared
 * byte by byte with one of its type (fused_slow.c): its first of a shape, and
 * rare types. A wrong guess costs bytes, never correctness: what was found is
 * used only if its shape is equal, and every field is compared.
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
	TEXT_ADDR = 5,	      /* "a4addr" */
	TEXT_OLD = 9,	      /* "a8old_addr" */
	TEXT_SIZE = 5,	      /* "a4size" */
	TEXT_HASH = 11,	      /* "aastack_hash" */
	THREAD_SHIFT = 19,    /* of the thread's number in a shape */
	THREADS_MAX = 1 << 13 /* and how many numbers there are */
};

/* What the types have after addr. */
struct rule {
	uint64_t size_mask; /* all bits if there is a size; so with old_addr and the stack hash */
	uint64_t old_mask;
	uint64_t hash_mask;
	uint32_t text; /* bytes of "a4type", the type's name and "a4size"; 0: byte by byte */
};

#define TYPE_TEXT(name) (5 + 1 + sizeof(name) - 1)
#define ALL		(~(uint64_t)0)

static const struct rule rules[MT_EVENT_TYPES] = {
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
 * What an integer adds to the sum, by its bit length, where 0 stands for "not
 * there" and the number 0 has length 1.
 */
#define FORM(shift, form, bytes) ((bytes) | (uint32_t)(form) << (shift))
#define FORMS(shift)                                                                    \
	{                                                                               \
		[1 ... 7] = FORM(shift, 1, 1), [8] = FORM(shift, 2, 2),                 \
		       [9 ... 16] = FORM(shift, 3, 3), [17 ... 32] = FORM(shift, 4, 5), \
		       [33 ... 64] = FORM(shift, 5, 9),                                 \
	}

enum field { FIELD_TIMESTAMP, FIELD_ADDR, FIELD_SIZE, FIELD_OLD, FIELD_HASH, FIELDS };

static const uint32_t forms[FIELDS][65] = {
	[FIELD_TIMESTAMP] = FORMS(12), [FIELD_ADDR] = FORMS(15), [FIELD_SIZE] = FORMS(18),
	[FIELD_OLD] = FORMS(21),       [FIELD_HASH] = FORMS(24),
};

MT_FUSED_LOOP uint32_t form_of(enum field field, uint64_t v)
{
	return forms[field][mt_fused_bit_length(v | 1)];
}

MT_FUSED_LOOP uint32_t int_bytes(uint32_t form)
{
	return form & 0xff;
}

static uint32_t signed_bytes(int32_t v)
{
	if (v >= 0)
		return int_bytes(form_of(FIELD_SIZE, (uint64_t)v));
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

MT_FUSED_LOOP const struct mt_fused_thread *find_thread(struct mt_fused_plan *plan,
							const struct mt_event *e)
{
	uint64_t ids = thread_ids(e);
	struct mt_fused_thread *slot =
		&plan->threads[(ids * 0x9e3779b97f4a7c15u) >> (64 - MT_FUSED_THREADS_LOG)];

	if (__builtin_expect(slot->ids != ids || !slot->len, 0))
		add_thread(plan, slot, e);
	return slot;
}

/*
 * One field laid over its like. `text` is what stands before its low bytes
 * since the last field: it goes to the growing sequence. If the numbers
 * differ, that one is final, and the next begins with the bytes that do.
 */
MT_FUSED_LOOP void lay_field(struct mt_fused_out *out, uint32_t text, uint64_t mine,
			     uint64_t theirs)
{
	uint32_t low = (mt_fused_bit_length(mine ^ theirs) + 7) / 8;
	uint64_t be = htobe64(mine << ((64 - 8 * low) & 63));

	out->word += (uint64_t)(text - low) << MT_SEQ_MATCH_SHIFT;
	*out->seq = out->word;
	memcpy(out->lit, &be, sizeof(be));
	out->seq += low != 0;
	out->lit += low;
	if (low)
		out->word = (uint64_t)low << MT_SEQ_LIT_SHIFT | MT_SEQ_REPEAT;
}

/* The first match of an event begins: what the growing sequence is then. */
MT_FUSED_LOOP void begin_match(struct mt_fused_out *out, uint32_t dist)
{
	uint64_t word = out->word;

	if (__builtin_expect(dist == out->dist, 0)) {
		mt_fused_out_match(out, dist, 0);
		return;
	}
	*out->seq = word;
	if (MT_SEQ_MATCH(word)) {
		out->seq++;
		word = 0;
	}
	/* Literals that wait have the offset of a match that will not come. */
	out->word = (word >> MT_SEQ_LIT_SHIFT) << MT_SEQ_LIT_SHIFT | MT_SEQ_NEW(dist);
	out->dist = dist;
}

/* The two tables' slots for an event. */
struct slots {
	uint16_t *exact;
	uint16_t *near;
};

MT_FUSED_LOOP struct slots find_slots(struct mt_fused_plan *plan, uint32_t shape, uint64_t size,
				      uint64_t hash)
{
	uint64_t key = (size * 0xd6e8feb86659fd93u) ^ hash ^ shape;

	return (struct slots){
		&plan->exact[(key * 0x9e3779b97f4a7c15u) >> (64 - MT_FUSED_EXACT_LOG)],
		&plan->near[(uint32_t)(shape * 0x9e3779b1u) >> (32 - MT_FUSED_NEAR_LOG)],
	};
}

MT_FUSED_LOOP bool usable(const struct mt_fused_plan *plan, struct mt_fused_mark mark,
			  uint32_t shape)
{
	return mark.shape == shape && plan->pos - mark.pos <= MT_FUSED_WINDOW;
}

/* Plans plan->next. Returns as mt_fused_plan_block() does. */
MT_FUSED_LOOP int plan_event(struct mt_fused_plan *plan, struct mt_fused_out *out)
{
	const struct mt_event *e = &plan->events[plan->next], *r;
	const struct rule *rule = &rules[e->type];
	const struct mt_fused_thread *thread = find_thread(plan, e);
	uint64_t size = e->size & rule->size_mask, hash = e->stack_hash & rule->hash_mask;
	uint64_t old_mask = rule->old_mask & -(uint64_t)(e->flags & MT_EVENT_HAS_OLD);
	uint64_t old = e->aux & old_mask;
	uint32_t ts_form = form_of(FIELD_TIMESTAMP, e->timestamp_ns);
	uint32_t addr_form = form_of(FIELD_ADDR, e->addr);
	uint32_t size_form = form_of(FIELD_SIZE, size) & (uint32_t)rule->size_mask;
	uint32_t old_form = form_of(FIELD_OLD, old) & (uint32_t)old_mask;
	uint32_t hash_form = hash ? form_of(FIELD_HASH, hash) : 0;
	uint32_t sum = ts_form + addr_form + size_form + old_form + hash_form;
	uint32_t shape = (sum >> 8) + e->type + thread->shape;
	uint32_t len = thread->len + (sum & 0xff) + TEXT_ADDR + rule->text +
		       (old_mask ? TEXT_OLD : 0) + (hash ? TEXT_HASH : 0);
	uint32_t number = plan->next + 1, found;
	struct slots slots = find_slots(plan, shape, size, hash);

	found = *slots.exact;
	if (!usable(plan, plan->marks[found], shape))
		found = *slots.near;
	if (!rule->text)
		shape = 0;
	if (__builtin_expect(
		    !rule->text || !thread->shape || !usable(plan, plan->marks[found], shape), 0)) {
		int ret;

		plan->out = *out;
		ret = mt_fused_plan_slow(plan, shape);
		*out = plan->out;
		if (ret || !thread->shape || !shape)
			return ret;
		*slots.exact = *slots.near = (uint16_t)number;
		return 0;
	}
	*slots.exact = *slots.near = (uint16_t)number;
	plan->marks[number] = (struct mt_fused_mark){ plan->pos, shape };
	r = &plan->events[found - 1];
	begin_match(out, plan->pos - plan->marks[found].pos);
	lay_field(out, thread->len + int_bytes(ts_form), e->timestamp_ns, r->timestamp_ns);
	lay_field(out, TEXT_ADDR + int_bytes(addr_form), e->addr, r->addr);
	if (old_mask) {
		uint32_t text = rule->text - TEXT_SIZE;

		lay_field(out, text + TEXT_OLD + int_bytes(old_form), old, r->aux);
		lay_field(out, TEXT_SIZE + int_bytes(size_form), size, r->size);
	} else {
		lay_field(out, rule->text + int_bytes(size_form), size, r->size & rule->size_mask);
	}
	if (hash)
		lay_field(out, TEXT_HASH + int_bytes(hash_form), hash, r->stack_hash);
	plan->pos += len;
	plan->next++;
	return 0;
}

MT_FUSED_LOOP int plan_block(struct mt_fused_plan *plan, uint8_t *lit)
{
	struct mt_fused_out out = { plan->seqs, 0, lit, plan->out.dist };
	uint32_t end = plan->pos + MT_FUSED_BLOCK_TARGET;
	int ret = 0;

	while (!ret && plan->next < plan->n && plan->pos < end) {
		if (plan->events[plan->next].type >= MT_EVENT_TYPES)
			return -EINVAL;
		ret = plan_event(plan, &out);
	}
	mt_fused_out_flush(&out);
	plan->out = out;
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
	plan->marks[0] = (struct mt_fused_mark){ 0, 0 };
	memset(plan->exact, 0, sizeof(plan->exact));
	memset(plan->near, 0, sizeof(plan->near));
	memset(plan->alike, 0, sizeof(plan->alike));
	memset(plan->of_type, 0, sizeof(plan->of_type));
	memset(plan->threads, 0, sizeof(plan->threads));
}
