/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a reader of the artifact found wrong, for a message. common prints
 * nothing: the caller that knows the file's name does.
 *
 * Thread rule: values.
 */
#ifndef MT_COMMON_DIAG_H
#define MT_COMMON_DIAG_H

#include <stdint.h>

enum mt_diag_kind {
	MT_DIAG_NONE = 0,
	MT_DIAG_SYSTEM,	 /* a system call failed; `why` names it and the error */
	MT_DIAG_CUT,	 /* the file ends inside a frame, or before its first */
	MT_DIAG_DAMAGED, /* bytes that no writer makes */
	MT_DIAG_NOT_OURS /* the file does not begin with a zstd frame */
};

#define MT_DIAG_UNKNOWN UINT64_MAX

struct mt_diag {
	enum mt_diag_kind kind;
	uint64_t frame;	  /* data frames counted from 0; the next one if it is not in any */
	uint64_t offset;  /* of that frame, or of the first bad byte outside a frame, in the file */
	uint64_t missing; /* of a damaged frame: events that were not given; MT_DIAG_UNKNOWN */
	char why[200];	  /* one line, without file name, frame and offset */
};

/* Fills *diag, with how much is missing not known; takes NULL. */
void mt_diag_set(struct mt_diag *diag, enum mt_diag_kind kind, uint64_t frame, uint64_t offset,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
