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
 *   | seq n-1: low | seq n-2: states, low | ... | seq 0 | states | 1 |
 *
 * "States" are the steps from the sequence that was coded before to this one:
 * offset, match length, literal length; "low" the low bits of literals,
 * match and offset. The very last are the three states that the decoder starts
 * with, and one bit that tells where the stream ends.
 */

void mt_fused_count(const struct mt_fused_seq *seqs, size_t n, uint32_t ret_counts[MT_FSE_ROWS])
{
	memset(ret_counts, 0, sizeof(uint32_t) * MT_FSE_ROWS);
	for (size_t i = 0; i < n; i++) {
		ret_counts[MT_SEQ_ROW(seqs[i].sum, MT_SEQ_LITS_SHIFT) / MT_FSE_STATES]++;
		ret_counts[MT_SEQ_ROW(seqs[i].sum, MT_SEQ_MATCH_SHIFT) / MT_FSE_STATES]++;
		ret_counts[MT_SEQ_ROW(seqs[i].sum, MT_SEQ_OFFSET_SHIFT) / MT_FSE_STATES]++;
	}
}

/* What is written so far. Up to 7 bits wait until they make a whole byte. */
struct bits {
	uint8_t *p;
	uint64_t held;
	unsigned int n;
};

MT_FUSED_LOOP void put(struct bits *b, uint64_t v, unsigned int n)
{
	b->held |= v << b->n;
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

/* 7 bits may wait, and the three steps take at most 24. */
MT_FUSED_LOOP void put_low(struct bits *b, uint64_t low, unsigned int bits)
{
	if (__builtin_expect(bits > 32, 0)) {
		put(b, low & 0xffffffffu, 32);
		flush(b);
		low >>= 32;
		bits -= 32;
	}
	put(b, low, bits);
	flush(b);
}

/*
 * One code. `*at` counts the bits in its low 6 bits; what an entry has above
 * them is carried along, since shifts look at the low 6 bits only.
 */
MT_FUSED_LOOP void put_step(uint64_t *held, unsigned int *at, const uint16_t *row, uint64_t *state)
{
	unsigned int entry = row[*state];
	uint64_t above = ~(uint64_t)0 << (entry & 63);

	*held |= (*state & ~above) << (*at & 63);
	*at += entry;
	*state = MT_FSE_ENTRY_NEXT(entry);
}

/* n > 0 sequences, the last one first. */
MT_FUSED_LOOP uint8_t *write_bits(const struct mt_fused_seq *seqs, size_t n,
				  const struct mt_fse_tables *tables, uint8_t *out)
{
	const struct mt_fused_seq *seq = seqs + n - 1;
	const uint16_t *steps = tables->step[0];
	uint64_t ls = tables->first[MT_SEQ_ROW(seq->sum, MT_SEQ_LITS_SHIFT) / MT_FSE_STATES];
	uint64_t ms = tables->first[MT_SEQ_ROW(seq->sum, MT_SEQ_MATCH_SHIFT) / MT_FSE_STATES];
	uint64_t os = tables->first[MT_SEQ_ROW(seq->sum, MT_SEQ_OFFSET_SHIFT) / MT_FSE_STATES];
	struct bits b = { .p = out };

	put_low(&b, seq->low, MT_SEQ_BITS(seq->sum));
	while (seq != seqs) {
		uint64_t sum = (--seq)->sum;

		put_step(&b.held, &b.n, steps + MT_SEQ_ROW(sum, MT_SEQ_OFFSET_SHIFT), &os);
		put_step(&b.held, &b.n, steps + MT_SEQ_ROW(sum, MT_SEQ_MATCH_SHIFT), &ms);
		put_step(&b.held, &b.n, steps + MT_SEQ_ROW(sum, MT_SEQ_LITS_SHIFT), &ls);
		b.n &= 63;
		put_low(&b, seq->low, MT_SEQ_BITS(sum));
	}
	put(&b, ms, tables->log[MT_FSE_MATCHES]);
	put(&b, os, tables->log[MT_FSE_OFFSETS]);
	put(&b, ls, tables->log[MT_FSE_LITS]);
	put(&b, 1, 1);
	flush(&b);
	return b.p + (b.n != 0);
}

static uint8_t *write_bits_plain(const struct mt_fused_seq *seqs, size_t n,
				 const struct mt_fse_tables *tables, uint8_t *out)
{
	return write_bits(seqs, n, tables, out);
}

#if MT_FUSED_HAVE_BITS
MT_FUSED_BITS_CODE static uint8_t *write_bits_fast(const struct mt_fused_seq *seqs, size_t n,
						   const struct mt_fse_tables *tables, uint8_t *out)
{
	return write_bits(seqs, n, tables, out);
}
#endif

uint8_t *mt_fused_bits(const struct mt_fused_seq *seqs, size_t n,
		       const struct mt_fse_tables *tables, bool cpu_has_bits, uint8_t *out)
{
#if MT_FUSED_HAVE_BITS
	if (cpu_has_bits)
		return write_bits_fast(seqs, n, tables, out);
#endif
	(void)cpu_has_bits;
	return write_bits_plain(seqs, n, tables, out);
}
