/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sequences of the fused writer: how they are kept between planning and
 * coding, and how one grows. fused_plan.c tells what a sequence is.
 *
 * A sequence is three numbers: of literals, of bytes to match, and how far
 * back (RFC 8878, 3.1.1.3.2). The format writes a number as a code, packed by
 * its frequency, and the number's low bits as they are. So a sequence is kept
 * as a sum, to which each of its numbers adds the place of its code's row in
 * the coding tables and how many low bits it has, and those bits themselves.
 *
 *   bit 0          16             32             48           64
 *   +--------------+--------------+--------------+------------+
 *   | literals row | match row    | offset row   | low bits   |
 *   +--------------+--------------+--------------+------------+
 *
 * Rows count in table entries and are below 2^15; low bits are at most 51.
 *
 * The offset's number is 1 for "as far back as the match before", else the
 * distance plus 3. The format has two more short forms (2 and 3, and a shift of
 * meaning where there are no literals); none of them is ever written.
 *
 * Thread rule: one owner.
 */
#ifndef MT_COMMON_FUSED_SEQ_H
#define MT_COMMON_FUSED_SEQ_H

#include <stdint.h>
#include <string.h>

#include "common/fused_cpu.h"
#include "common/fused_fse.h"

#define MT_FUSED_WINDOW_LOG 19
#define MT_FUSED_WINDOW	    (1u << MT_FUSED_WINDOW_LOG) /* no match reaches back further */

/*
 * A block ends with the event that brings it to the target. A larger event
 * than EVENT_MAX makes the frame one for libzstd, so that a block has at most
 * their sum, below the 128 KiB of the format.
 */
#define MT_FUSED_BLOCK_TARGET (64u << 10)
#define MT_FUSED_EVENT_MAX    (16u << 10)

/* An event has at least 38 bytes, and at most a sequence for each of 12 parts and one more. */
#define MT_FUSED_EVENT_SEQS 13u
#define MT_FUSED_SEQS_MAX   ((MT_FUSED_BLOCK_TARGET / 38 + 2) * MT_FUSED_EVENT_SEQS)

/* Literals are written in steps of 8 bytes: this much may be touched behind them. */
#define MT_FUSED_LIT_SLACK 16u

struct mt_fused_seq {
	uint64_t sum;
	uint64_t low; /* the low bits: of the literals first, then match, then offset */
};

#define MT_SEQ_LITS_SHIFT   0
#define MT_SEQ_MATCH_SHIFT  16
#define MT_SEQ_OFFSET_SHIFT 32
#define MT_SEQ_BITS_SHIFT   48

/* What a number adds to the sum. */
#define MT_SEQ_PART(shift, row, bits) \
	((uint64_t)(row)*MT_FSE_STATES << (shift) | (uint64_t)(bits) << MT_SEQ_BITS_SHIFT)
#define MT_SEQ_LITS_PART(code, bits) MT_SEQ_PART(MT_SEQ_LITS_SHIFT, MT_FSE_LITS_ROW + (code), bits)
#define MT_SEQ_MATCH_PART(code, bits) \
	MT_SEQ_PART(MT_SEQ_MATCH_SHIFT, MT_FSE_MATCHES_ROW + (code), bits)
/* The code of an offset is the place of its highest bit, all below are low bits. */
#define MT_SEQ_OFFSET_PART(code) MT_SEQ_PART(MT_SEQ_OFFSET_SHIFT, MT_FSE_OFFSETS_ROW + (code), code)
#define MT_SEQ_REPEAT		 MT_SEQ_OFFSET_PART(0)

#define MT_SEQ_ROW(sum, shift) (((sum) >> (shift)) & 0xffff)
#define MT_SEQ_BITS(sum)       ((unsigned int)((sum) >> MT_SEQ_BITS_SHIFT))

/* Small numbers by table; larger ones have a code for each power of two. */
#define MT_SEQ_LITS_SMALL  64
#define MT_SEQ_MATCH_SMALL 131
extern const uint64_t mt_seq_lits_parts[MT_SEQ_LITS_SMALL];
extern const uint64_t mt_seq_match_parts[MT_SEQ_MATCH_SMALL]; /* the first 3 are never used */

/*
 * The sequences of the block being planned. One of them is still growing:
 * first by literals, then by its match. It is sealed when something comes that
 * it cannot take: literals after its match, or another distance.
 */
struct mt_fused_out {
	struct mt_fused_seq *seq; /* where the growing one goes */
	uint8_t *lit;		  /* where the next literal goes */
	uint64_t offset_part;	  /* of the growing one, once it has a match */
	uint64_t offset_low;
	uint32_t lits;
	uint32_t match;
	uint32_t dist; /* of the last match: what MT_SEQ_REPEAT stands for */
};

MT_FUSED_LOOP unsigned int mt_seq_high_bit(uint32_t v)
{
	return 31 - (unsigned int)__builtin_clz(v);
}

MT_FUSED_LOOP uint64_t mt_seq_low_bits(uint64_t v, unsigned int n)
{
	return v & (((uint64_t)1 << n) - 1);
}

/* Sequences of large numbers; rare. */
struct mt_fused_seq mt_fused_seal_large(const struct mt_fused_out *out);

/* The growing sequence as it is now; nonsense if it has no match yet. */
MT_FUSED_LOOP struct mt_fused_seq mt_fused_seal(const struct mt_fused_out *out)
{
	struct mt_fused_seq seq;
	uint64_t lits, match;
	unsigned int shift;

	if (__builtin_expect(out->lits >= 16 || out->match >= MT_SEQ_MATCH_SMALL, 0))
		return mt_fused_seal_large(out);
	/* Codes of less than 16 literals have no low bits. */
	lits = mt_seq_lits_parts[out->lits];
	match = mt_seq_match_parts[out->match];
	shift = MT_SEQ_BITS(match);
	seq.sum = lits + match + out->offset_part;
	seq.low = mt_seq_low_bits(out->match - 3, shift) | out->offset_low << shift;
	return seq;
}

/* The growing sequence has its match and goes on no more; the next begins. */
MT_FUSED_LOOP void mt_fused_out_end(struct mt_fused_out *out)
{
	if (!out->match)
		return;
	*out->seq++ = mt_fused_seal(out);
	out->lits = 0;
	out->match = 0;
}

MT_FUSED_LOOP void mt_fused_out_repeat(struct mt_fused_out *out)
{
	out->offset_part = MT_SEQ_REPEAT;
	out->offset_low = 0;
}

MT_FUSED_LOOP void mt_fused_out_distance(struct mt_fused_out *out, uint32_t dist)
{
	unsigned int code = mt_seq_high_bit(dist + 3);

	out->offset_part = MT_SEQ_OFFSET_PART(0) + code * (MT_SEQ_OFFSET_PART(1) - MT_SEQ_REPEAT);
	out->offset_low = mt_seq_low_bits(dist + 3, code);
	out->dist = dist;
}

/* The general way, for events that are compared byte by byte. */
void mt_fused_out_literals(struct mt_fused_out *out, const uint8_t *p, uint32_t len);
/* `len` is at least 3, unless it goes on from a match at the same distance. */
void mt_fused_out_match(struct mt_fused_out *out, uint32_t dist, uint32_t len);

#endif
