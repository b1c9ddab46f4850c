/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * FSE tables (RFC 8878, 4.1) in the form that the fused writer codes with, for
 * the three alphabets of a sequence: literal lengths, offsets, match lengths.
 *
 * A table answers for a code and the coder's state: how many low bits of the
 * state to write, and what the state is then. Both stand in one 16-bit entry,
 * so that a step costs one load.
 *
 * Thread rule: tables have one owner while they are built, and are constant then.
 */
#ifndef MT_COMMON_FUSED_FSE_H
#define MT_COMMON_FUSED_FSE_H

#include <stddef.h>
#include <stdint.h>

#define MT_FSE_LOG    8 /* of the tables made from counts */
#define MT_FSE_STATES (1u << MT_FSE_LOG)

enum mt_fse_kind { MT_FSE_LITS, MT_FSE_OFFSETS, MT_FSE_MATCHES, MT_FSE_KINDS };

/* Codes of each alphabet that can come: offsets are bounded by the window. */
#define MT_FSE_LITS_CODES    36u
#define MT_FSE_OFFSETS_CODES 20u
#define MT_FSE_MATCHES_CODES 53u
#define MT_FSE_CODES_MAX     53u

/* The tables of the three alphabets stand in one: a row for each code of each of them. */
#define MT_FSE_LITS_ROW	   0u
#define MT_FSE_OFFSETS_ROW (MT_FSE_LITS_ROW + MT_FSE_LITS_CODES)
#define MT_FSE_MATCHES_ROW (MT_FSE_OFFSETS_ROW + MT_FSE_OFFSETS_CODES)
#define MT_FSE_ROWS	   (MT_FSE_MATCHES_ROW + MT_FSE_MATCHES_CODES)

#define MT_FSE_ENTRY_BITS(e) ((e)&0xffu)
#define MT_FSE_ENTRY_NEXT(e) ((e) >> 8)

struct mt_fse_tables {
	uint16_t step[MT_FSE_ROWS][MT_FSE_STATES]; /* by state: bits | next state << 8 */
	uint8_t first[MT_FSE_ROWS]; /* a state to begin with, so that the code is decoded */
	uint8_t log[MT_FSE_KINDS];  /* the states of each are 0 to 2^log - 1 */
};

/* The tables that every decoder knows (RFC 8878, 3.1.1.3.2.2). */
void mt_fse_predefined(struct mt_fse_tables *tables);

/*
 * Makes the tables from how often each code occurred, by row, and writes their
 * descriptions to `out`; returns the end, at most MT_FSE_HEAD_MAX bytes later.
 * Every code gets a place, also one that did not occur, so that the tables can
 * code whatever blocks follow.
 */
#define MT_FSE_HEAD_MAX 240u
uint8_t *mt_fse_from_counts(struct mt_fse_tables *tables, const uint32_t *counts, uint8_t *out);

#endif
