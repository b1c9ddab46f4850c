/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/fused_bits.h"

#include <endian.h>
#include <string.h>

#include "common/fused_cpu.h"
#include "common/fused_seq.h"

/*
 * Each number of a sequence is a code, which FSE writes, and the number's low
 * bits, which stand as they are. The decoder reads the stream from its end, so
 * the last sequence is written first, and of a sequence what it reads last:
 *
 *   first written                                          last written
 *   | seq n-1: extra | seq n-2: states, extra | ... | seq 0 | states | 1 |
 *
 * "States" are the steps from the sequence that was coded before to this one:
 * offset, match length, literal length; "extra" the low bits of literals,
 * match and offset. The very last are the three states that the decoder starts
 * with, and one bit that tells where the stream ends.
 */

/* Code and number of low bits of small numbers; larger ones have a code for each power of two. */
struct code {
	uint8_t code;
	uint8_t bits;
};

#define C4(c, b)                      \
	{ c, b }, { c, b }, { c, b }, \
	{                             \
		c, b                  \
	}
#define C8(c, b)  C4(c, b), C4(c, b)
#define C16(c, b) C8(c, b), C8(c, b)
#define C32(c, b) C16(c, b), C16(c, b)
#define P2(c)              \
	{ c, 0 },          \
	{                  \
		(c) + 1, 0 \
	}
#define P4(c)  P2(c), P2((c) + 2)
#define P16(c) P4(c), P4((c) + 4), P4((c) + 8), P4((c) + 12)
#define T2(c)        \
	{ c, 1 },    \
	{            \
		c, 1 \
	}

static const struct code lits_codes[64] = {
	P16(0),	   T2(16),    T2(17),	 T2(18),    T2(19),
	C4(20, 2), C4(21, 2), C8(22, 3), C8(23, 3), C16(24, 4),
};

/* By the match's length less 3. */
static const struct code match_codes[128] = {
	P16(0),	   P16(16),   T2(32),	 T2(33),     T2(34),	 T2(35),     C4(36, 2),
	C4(37, 2), C8(38, 3), C8(39, 3), C16(40, 4), C16(41, 4), C32(42, 5),
};

MT_FUSED_LOOP unsigned int high_bit(uint32_t v)
{
	return 31 - (unsigned int)__builtin_clz(v);
}

MT_FUSED_LOOP struct code code_of_lits(uint32_t lits)
{
	unsigned int high;

	if (__builtin_expect(lits < 64, 1))
		return lits_codes[lits];
	high = high_bit(lits);
	return (struct code){ (uint8_t)(high + 19), (uint8_t)high };
}

MT_FUSED_LOOP struct code code_of_match(uint32_t over3)
{
	unsigned int high;

	if (__builtin_expect(over3 < 128, 1))
		return match_codes[over3];
	high = high_bit(over3);
	return (struct code){ (uint8_t)(high + 36), (uint8_t)high };
}

void mt_fused_count(const uint64_t *seqs, size_t n,
		    uint32_t ret_counts[MT_FSE_KINDS][MT_FSE_CODES_MAX])
{
	memset(ret_counts, 0, sizeof(uint32_t) * MT_FSE_KINDS * MT_FSE_CODES_MAX);
	for (size_t i = 0; i < n; i++) {
		ret_counts[MT_FSE_LITS][code_of_lits(MT_SEQ_LITS(seqs[i])).code]++;
		ret_counts[MT_FSE_OFFSETS][high_bit(MT_SEQ_OFFSET(seqs[i]))]++;
		ret_counts[MT_FSE_MATCHES][code_of_match(MT_SEQ_MATCH(seqs[i]) - 3).code]++;
	}
}

/* Bits wait in `held` until they make whole bytes. */
struct bits {
	uint8_t *p;
	uint64_t held;
	unsigned int n; /* at most 7 after a flush */
};

MT_FUSED_LOOP void put(struct bits *b, uint64_t v, unsigned int n)
{
	b->held |= (v & (((uint64_t)1 << n) - 1)) << b->n;
	b->n += n;
}

MT_FUSED_LOOP void flush(struct bits *b)
{
	uint64_t le = htole64(b->held);

	memcpy(b->p, &le, sizeof(le));
	b->p += b->n >> 3;
	b->held >>= b->n & ~7u;
	b->n &= 7;
}

/* Entries of the three tables for the present states. */
MT_FUSED_LOOP void put_step(struct bits *b, const uint16_t *row, unsigned int *state)
{
	unsigned int entry = row[*state];

	put(b, *state, MT_FSE_ENTRY_BITS(entry));
	*state = MT_FSE_ENTRY_NEXT(entry);
}

/*
 * Widths: 7 bits may wait, the steps take at most 24. Literals and match take
 * at most 16 each and, together with the offset's 19, fit only if they are
 * small, as nearly always.
 */
MT_FUSED_LOOP void put_extra(struct bits *b, uint64_t w, struct code lits, struct code match)
{
	uint32_t offset = MT_SEQ_OFFSET(w);

	put(b, MT_SEQ_LITS(w), lits.bits);
	put(b, MT_SEQ_MATCH(w) - 3, match.bits);
	if (__builtin_expect(lits.bits + match.bits > 13, 0))
		flush(b);
	put(b, offset, high_bit(offset));
	flush(b);
}

MT_FUSED_LOOP uint8_t *write_bits(const uint64_t *seqs, size_t n, const struct mt_fse_table *tables,
				  uint8_t *out)
{
	const struct mt_fse_table *lt = &tables[MT_FSE_LITS], *mt = &tables[MT_FSE_MATCHES];
	const struct mt_fse_table *ot = &tables[MT_FSE_OFFSETS];
	uint64_t w = seqs[n - 1];
	struct code lits = code_of_lits(MT_SEQ_LITS(w));
	struct code match = code_of_match(MT_SEQ_MATCH(w) - 3);
	struct bits b = { .p = out };
	unsigned int ls = lt->first[lits.code], ms = mt->first[match.code];
	unsigned int os = ot->first[high_bit(MT_SEQ_OFFSET(w))];

	put_extra(&b, w, lits, match);
	for (size_t i = n - 1; i-- > 0;) {
		w = seqs[i];
		lits = code_of_lits(MT_SEQ_LITS(w));
		match = code_of_match(MT_SEQ_MATCH(w) - 3);
		put_step(&b, ot->step[high_bit(MT_SEQ_OFFSET(w))], &os);
		put_step(&b, mt->step[match.code], &ms);
		put_step(&b, lt->step[lits.code], &ls);
		put_extra(&b, w, lits, match);
	}
	put(&b, ms, mt->log);
	put(&b, os, ot->log);
	put(&b, ls, lt->log);
	put(&b, 1, 1);
	flush(&b);
	return b.p + (b.n != 0);
}

static uint8_t *write_bits_plain(const uint64_t *seqs, size_t n, const struct mt_fse_table *tables,
				 uint8_t *out)
{
	return write_bits(seqs, n, tables, out);
}

#if MT_FUSED_HAVE_BITS
MT_FUSED_BITS_CODE static uint8_t *write_bits_fast(const uint64_t *seqs, size_t n,
						   const struct mt_fse_table *tables, uint8_t *out)
{
	return write_bits(seqs, n, tables, out);
}
#endif

uint8_t *mt_fused_bits(const uint64_t *seqs, size_t n, const struct mt_fse_table *tables,
		       bool cpu_has_bits, uint8_t *out)
{
#if MT_FUSED_HAVE_BITS
	if (cpu_has_bits)
		return write_bits_fast(seqs, n, tables, out);
#endif
	(void)cpu_has_bits;
	return write_bits_plain(seqs, n, tables, out);
}
