/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/fused_fse.h"

#include <string.h>

/*
 * What FSE does, in short. A decoder has a state, an index into a table of
 * cells; a cell names the code to give out. A code that is to be frequent owns
 * many cells. To code backwards, the coder asks: which cell of this code leads
 * to my present state? A code with p of S cells divides the S states among
 * its cells, 2^n neighbours each; the number n of bits tells the decoder which
 * of the neighbours it was. Few cells, many neighbours, many bits.
 *
 * Cells are spread over the table by the rule of the format. Numbering a
 * code's cells in table order, cell j (counted from p on: j in p..2p-1) takes
 * the states x with x >> n == j, x counted from S on, where n is the one
 * number of bits that brings x into p..2p-1.
 */

static const struct {
	uint8_t row;
	uint8_t codes;
} kinds[MT_FSE_KINDS] = {
	[MT_FSE_LITS] = { MT_FSE_LITS_ROW, MT_FSE_LITS_CODES },
	[MT_FSE_OFFSETS] = { MT_FSE_OFFSETS_ROW, MT_FSE_OFFSETS_CODES },
	[MT_FSE_MATCHES] = { MT_FSE_MATCHES_ROW, MT_FSE_MATCHES_CODES },
};

/* RFC 8878, 3.1.1.3.2.2; -1 is a code of less than one cell, which gets one at the table's end. */
static const int8_t predefined_lits[36] = {
	4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
	2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1
};
static const int8_t predefined_offsets[29] = { 1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
					       1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1 };
static const int8_t predefined_matches[53] = { 1, 4, 3, 2, 2,  2,  2,  2,  2,  1,  1, 1, 1, 1,
					       1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1, 1, 1,
					       1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1, 1, 1,
					       1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1 };

static void spread(const int16_t *probs, unsigned int codes, unsigned int log, uint8_t *cells)
{
	unsigned int size = 1u << log, mask = size - 1;
	unsigned int step = (size >> 1) + (size >> 3) + 3;
	unsigned int high = size, at = 0;

	for (unsigned int c = 0; c < codes; c++) {
		if (probs[c] < 0)
			cells[--high] = (uint8_t)c;
	}
	for (unsigned int c = 0; c < codes; c++) {
		for (int i = 0; i < probs[c]; i++) {
			cells[at] = (uint8_t)c;
			do
				at = (at + step) & mask;
			while (at >= high);
		}
	}
}

/* The row of one code, whose cells stand in `cell`, p of them in table order. */
static void fill_row(uint16_t *row, unsigned int log, const uint8_t *cell, unsigned int p)
{
	unsigned int size = 1u << log, x = size, bits = log;

	while (size >> bits < p)
		bits--;
	/* From here p <= x >> bits < 2p; x grows by the neighbours of one cell. */
	while (x < 2 * size) {
		unsigned int run;
		uint16_t entry;

		if (x >> bits >= 2 * p)
			bits++;
		run = 1u << bits;
		entry = (uint16_t)(bits | (unsigned int)cell[(x >> bits) - p] << 8);
		for (unsigned int i = 0; i < run; i++)
			row[x - size + i] = entry;
		x += run;
	}
}

/* `codes` may be more than we have rows for: those will not come. */
static void build(struct mt_fse_tables *tables, enum mt_fse_kind kind, const int16_t *probs,
		  unsigned int codes, unsigned int log)
{
	uint8_t cells[MT_FSE_STATES], sorted[MT_FSE_STATES];
	unsigned int start[MT_FSE_CODES_MAX + 1], fill[MT_FSE_CODES_MAX];

	start[0] = 0;
	for (unsigned int c = 0; c < codes; c++) {
		fill[c] = start[c];
		start[c + 1] = start[c] + (unsigned int)(probs[c] < 0 ? 1 : probs[c]);
	}
	spread(probs, codes, log, cells);
	for (unsigned int i = 0; i < 1u << log; i++)
		sorted[fill[cells[i]]++] = (uint8_t)i;
	tables->log[kind] = (uint8_t)log;
	for (unsigned int c = 0; c < kinds[kind].codes; c++) {
		unsigned int row = kinds[kind].row + c;

		tables->first[row] = sorted[start[c]];
		fill_row(tables->step[row], log, sorted + start[c], start[c + 1] - start[c]);
	}
}

void mt_fse_predefined(struct mt_fse_tables *tables)
{
	static const struct {
		const int8_t *probs;
		uint8_t codes;
		uint8_t log;
	} known[MT_FSE_KINDS] = {
		[MT_FSE_LITS] = { predefined_lits, sizeof(predefined_lits), 6 },
		[MT_FSE_OFFSETS] = { predefined_offsets, sizeof(predefined_offsets), 5 },
		[MT_FSE_MATCHES] = { predefined_matches, sizeof(predefined_matches), 6 },
	};
	int16_t probs[MT_FSE_CODES_MAX];

	for (unsigned int k = 0; k < MT_FSE_KINDS; k++) {
		for (unsigned int c = 0; c < known[k].codes; c++)
			probs[c] = known[k].probs[c];
		build(tables, (enum mt_fse_kind)k, probs, known[k].codes, known[k].log);
	}
}

/*
 * One cell for every code, the rest by how often it occurred, what rounding
 * leaves over to the most frequent. Not the best division, but within a
 * hundredth of it here, and it never fails.
 */
static void divide(const uint32_t *counts, unsigned int codes, int16_t *probs)
{
	unsigned int left = MT_FSE_STATES - codes, spare = left, best = 0;
	uint64_t total = 0;

	for (unsigned int c = 0; c < codes; c++) {
		total += counts[c];
		if (counts[c] > counts[best])
			best = c;
	}
	for (unsigned int c = 0; c < codes; c++) {
		unsigned int share = total ? (unsigned int)((uint64_t)counts[c] * left / total) : 0;

		probs[c] = (int16_t)(1 + share);
		spare -= share;
	}
	probs[best] = (int16_t)(probs[best] + (int)spare);
}

/*
 * RFC 8878, 4.1.1: each probability plus one, in as few bits as what is left
 * allows; small values save one bit where the range is not a power of two.
 */
static uint8_t *describe(const int16_t *probs, unsigned int codes, uint8_t *p)
{
	unsigned int remaining = MT_FSE_STATES + 1, threshold = MT_FSE_STATES;
	unsigned int width = MT_FSE_LOG + 1, held_bits = 4;
	uint32_t held = MT_FSE_LOG - 5;

	for (unsigned int c = 0; c < codes; c++) {
		unsigned int max = 2 * threshold - 1 - remaining;
		unsigned int value = (unsigned int)probs[c] + 1;

		remaining -= (unsigned int)probs[c];
		if (value >= threshold)
			value += max;
		held |= value << held_bits;
		held_bits += width - (value < max);
		while (remaining < threshold) {
			width--;
			threshold >>= 1;
		}
		for (; held_bits >= 8; held_bits -= 8, held >>= 8)
			*p++ = (uint8_t)held;
	}
	if (held_bits)
		*p++ = (uint8_t)held;
	return p;
}

uint8_t *mt_fse_from_counts(struct mt_fse_tables *tables, const uint32_t *counts, uint8_t *out)
{
	for (unsigned int k = 0; k < MT_FSE_KINDS; k++) {
		int16_t probs[MT_FSE_CODES_MAX] = { 0 };

		divide(counts + kinds[k].row, kinds[k].codes, probs);
		build(tables, (enum mt_fse_kind)k, probs, kinds[k].codes, MT_FSE_LOG);
		out = describe(probs, kinds[k].codes, out);
	}
	return out;
}
