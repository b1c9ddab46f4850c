/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sequences of a block as the bits that a decoder reads (RFC 8878,
 * 3.1.1.3.2).
 *
 * Thread rule: pure functions.
 */
#ifndef MT_COMMON_FUSED_BITS_H
#define MT_COMMON_FUSED_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fused_fse.h"
#include "common/fused_seq.h"

/* Room that n sequences need at most: 75 bits each, and what the writer touches at the end. */
#define MT_FUSED_BITS_ROOM(n) ((size_t)(n)*10 + 32)

/* How often each code occurs in the sequences, by its row. */
void mt_fused_count(const struct mt_fused_seq *seqs, size_t n, uint32_t ret_counts[MT_FSE_ROWS]);

/* Writes n > 0 sequences to `out`; returns the end of what was written. */
uint8_t *mt_fused_bits(const struct mt_fused_seq *seqs, size_t n,
		       const struct mt_fse_tables *tables, bool cpu_has_bits, uint8_t *out);

#endif
