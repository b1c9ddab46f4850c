/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sequences of the fused writer: how they are kept between planning and
 * coding, and how one grows. fused_plan.c tells what a sequence is.
 *
 * A sequence is one word:
 *
 *   bit 0            20              38              56
 *   +----------------+---------------+---------------+--------+
 *   | offset value   | match length  | literals      | 0      |
 *   +----------------+---------------+---------------+--------+
 *
 * The offset value is RFC 8878's: 1 is "the offset of the match before", any
 * other is the distance plus 3. The format has two more short forms (2 and 3,
 * and a shift of meaning without literals); none of them is ever written.
 *
 * Thread rule: one owner.
 */
#ifndef MT_COMMON_FUSED_SEQ_H
#define MT_COMMON_FUSED_SEQ_H

#include <stdint.h>
#include <string.h>

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

#define MT_SEQ_MATCH_SHIFT 20
#define MT_SEQ_LIT_SHIFT   38
#define MT_SEQ_REPEAT	   ((uint64_t)1) /* offset value: as before */
#define MT_SEQ_NEW(dist)   ((uint64_t)(dist) + 3)
#define MT_SEQ_OFFSET(w)   ((uint32_t)((w) & ((1u << MT_SEQ_MATCH_SHIFT) - 1)))
#define MT_SEQ_MATCH(w)	   ((uint32_t)((w) >> MT_SEQ_MATCH_SHIFT) & ((1u << 18) - 1))
#define MT_SEQ_LITS(w)	   ((uint32_t)((w) >> MT_SEQ_LIT_SHIFT))

/*
 * The sequences of the block being planned. `word` is the sequence that still
 * grows: first by literals, then by its match. It becomes final when something
 * comes that it cannot take: literals after its match, or another distance.
 */
struct mt_fused_out {
	uint64_t *seq; /* where the next final sequence goes */
	uint64_t word;
	uint8_t *lit;  /* where the next literal goes */
	uint32_t dist; /* of the last match; what MT_SEQ_REPEAT stands for */
};

static inline void mt_fused_out_flush(struct mt_fused_out *out)
{
	if (MT_SEQ_MATCH(out->word)) {
		*out->seq++ = out->word;
		out->word = 0;
	}
}

static inline void mt_fused_out_literals(struct mt_fused_out *out, const uint8_t *p, uint32_t len)
{
	if (!len)
		return;
	mt_fused_out_flush(out);
	memcpy(out->lit, p, len);
	out->lit += len;
	out->word += (uint64_t)len << MT_SEQ_LIT_SHIFT;
}

/* len is at least 3 unless the match before is continued. */
static inline void mt_fused_out_match(struct mt_fused_out *out, uint32_t dist, uint32_t len)
{
	if (MT_SEQ_MATCH(out->word) && dist != out->dist)
		mt_fused_out_flush(out);
	if (!MT_SEQ_MATCH(out->word)) {
		uint32_t lits = MT_SEQ_LITS(out->word);

		/* Without literals before it, "as before" would mean another distance. */
		out->word = (uint64_t)lits << MT_SEQ_LIT_SHIFT;
		out->word += lits && dist == out->dist ? MT_SEQ_REPEAT : MT_SEQ_NEW(dist);
		out->dist = dist;
	}
	out->word += (uint64_t)len << MT_SEQ_MATCH_SHIFT;
}

#endif
