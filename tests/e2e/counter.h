/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The file in which the counting interposer keeps its numbers: one slot a process image, mapped
 * shared, so that no way to end loses them. compare.py reads the same layout.
 *
 *   offset 0     next     uint32: slots claimed; may run past COUNTER_SLOTS, then the file is full
 *   offset 256   slot 0, slot 1, ... of 256 bytes each
 *
 * Nothing here is shared with memtrack: that is the point of it.
 */
#ifndef MT_TESTS_E2E_COUNTER_H
#define MT_TESTS_E2E_COUNTER_H

#include <assert.h>
#include <stdint.h>

#define COUNTER_SLOTS	   8192u
#define COUNTER_SLOT_BYTES 256u
#define COUNTER_FILE_BYTES ((COUNTER_SLOTS + 1) * COUNTER_SLOT_BYTES)
#define COUNTER_ENV	   "MT_COUNTER"

enum counter_kind {
	COUNTER_MALLOC,
	COUNTER_CALLOC,
	COUNTER_ALIGNED,
	COUNTER_REALLOC,
	COUNTER_FREE,
	COUNTER_KINDS
};

enum counter_origin {
	COUNTER_BY_EXEC = 1,
	COUNTER_BY_FORK = 2,
};

struct counter_slot {
	uint32_t pid;
	uint32_t origin;	  /* enum counter_origin */
	uint64_t claim_ns;	  /* CLOCK_MONOTONIC */
	uint32_t threads_started; /* that made a call */
	uint32_t threads_ended;	  /* of those, that ran their destructors */
	uint64_t calls[8];	  /* by enum counter_kind; only calls that succeeded */
	uint64_t bytes[8];	  /* as asked for */
	uint64_t reserved[13];
};

static_assert(sizeof(struct counter_slot) == COUNTER_SLOT_BYTES, "compare.py knows this size");

#endif
