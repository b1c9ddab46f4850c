/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the unit tests of the fused writer share. Failures end the test at once. */
#ifndef MT_TESTS_UNIT_FUSED_UNIT_H
#define MT_TESTS_UNIT_FUSED_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "tests/unit/fused_support.h"

/* The events of the frame in hand, and the checker of the test. */
extern struct mt_event fused_events[MT_BATCH_EVENTS + 1];
extern struct fused_checker *fused_checker_now;

void fused_begin(void);
void fused_end(void);

/* The frame of the first n events gives their content. */
void fused_check_frame(size_t n);
/* The frames that were not taken by the writer itself so far. */
uint64_t fused_handed_on(void);

/* The frame of the first n events in memory of its own. */
struct mt_buf fused_frame_of(size_t n);

/* Fills in events of a heap in use, whose allocations have one of `sites` stacks. */
void fused_heap_events(size_t n, unsigned int sites);
/* The i-th of a row of like events. */
struct mt_event fused_malloc_event(uint64_t i);

/* Decompresses in small steps; returns how much came before the input was at its end. */
size_t fused_stream(const struct mt_buf *frame, size_t in_step, uint8_t *content, size_t room,
		    size_t out_step);
/* As fused_check_frame(), by a decoder that is given, and gives, so much at a time. */
void fused_check_streamed(size_t n, size_t in_step, size_t out_step);

#endif
