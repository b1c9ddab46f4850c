/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/fused_seq.h"

#define P2(p, c, b)  p(c, b), p(c, b)
#define P4(p, c, b)  P2(p, c, b), P2(p, c, b)
#define P8(p, c, b)  P4(p, c, b), P4(p, c, b)
#define P16(p, c, b) P8(p, c, b), P8(p, c, b)
#define P32(p, c, b) P16(p, c, b), P16(p, c, b)
#define EACH4(p, c)  p(c, 0), p((c) + 1, 0), p((c) + 2, 0), p((c) + 3, 0)
#define EACH16(p, c) EACH4(p, c), EACH4(p, (c) + 4), EACH4(p, (c) + 8), EACH4(p, (c) + 12)
#define LITS	     MT_SEQ_LITS_PART
#define MATCH	     MT_SEQ_MATCH_PART

/* RFC 8878, 3.1.1.3.2.1.1. */
const uint64_t mt_seq_lits_parts[MT_SEQ_LITS_SMALL] = {
	EACH16(LITS, 0), P2(LITS, 16, 1), P2(LITS, 17, 1), P2(LITS, 18, 1), P2(LITS, 19, 1),
	P4(LITS, 20, 2), P4(LITS, 21, 2), P8(LITS, 22, 3), P8(LITS, 23, 3), P16(LITS, 24, 4),
};

const uint64_t mt_seq_match_parts[MT_SEQ_MATCH_SMALL] = {
	0,
	0,
	0,
	EACH16(MATCH, 0),
	EACH16(MATCH, 16),
	P2(MATCH, 32, 1),
	P2(MATCH, 33, 1),
	P2(MATCH, 34, 1),
	P2(MATCH, 35, 1),
	P4(MATCH, 36, 2),
	P4(MATCH, 37, 2),
	P8(MATCH, 38, 3),
	P8(MATCH, 39, 3),
	P16(MATCH, 40, 4),
	P16(MATCH, 41, 4),
	P32(MATCH, 42, 5),
};

static uint64_t lits_part(uint32_t lits)
{
	unsigned int high;

	if (lits < MT_SEQ_LITS_SMALL)
		return mt_seq_lits_parts[lits];
	high = mt_seq_high_bit(lits);
	return LITS(high + 19, high);
}

static uint64_t match_part(uint32_t match)
{
	unsigned int high;

	if (match < MT_SEQ_MATCH_SMALL)
		return mt_seq_match_parts[match];
	high = mt_seq_high_bit(match - 3);
	return MATCH(high + 36, high);
}

struct mt_fused_seq mt_fused_seal_large(const struct mt_fused_out *out)
{
	uint64_t lits = lits_part(out->lits), match = match_part(out->match);
	struct mt_fused_seq seq;

	seq.sum = lits + match + out->offset_part;
	seq.low = mt_seq_low_bits(out->lits, MT_SEQ_BITS(lits)) |
		  mt_seq_low_bits(out->match - 3, MT_SEQ_BITS(match)) << MT_SEQ_BITS(lits) |
		  out->offset_low << MT_SEQ_BITS(lits + match);
	return seq;
}

void mt_fused_out_literals(struct mt_fused_out *out, const uint8_t *p, uint32_t len)
{
	if (!len)
		return;
	mt_fused_out_end(out);
	memcpy(out->lit, p, len);
	out->lit += len;
	out->lits += len;
}

void mt_fused_out_match(struct mt_fused_out *out, uint32_t dist, uint32_t len)
{
	if (out->match && dist != out->dist)
		mt_fused_out_end(out);
	/* Without literals before the match, "as before" would mean another distance. */
	if (!out->match && out->lits && dist == out->dist)
		mt_fused_out_repeat(out);
	else if (!out->match)
		mt_fused_out_distance(out, dist);
	out->match += len;
}
