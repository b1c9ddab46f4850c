/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How fast the merge fills batches while the encoder is slower than the program.
 *
 * Without a pace the merge fills a batch in a millisecond and then waits until the encoder is done
 * with another: chunks come back a batch at a time, and the program stands still in between for as
 * long as a batch takes to encode. With it the merge goes on all the time, as fast as the encoder
 * does, so chunks come back one after the other.
 *
 * Room is what could be merged at once: the batches that are not in flight, less what the one being
 * filled holds. The rate follows from it:
 *
 *   events a second = room / (batch_ns * (workers + 2) / 2)
 *
 * With room for (workers + 2) / 2 batches that is what the encoder takes, so it settles there:
 * above it the merge is faster and below it slower, never quite standing, so an encoder that takes
 * longer for a few batches than it did lately leaves no gap; and one that has not given a batch
 * back for longer than that is taken to be as slow as it shows. While fewer batches are ahead than
 * keep all workers busy and one more waiting there is no pace at all.
 *
 * Owner and threads: the merge. Pure: the caller waits.
 */
#ifndef MT_SIDECAR_PACE_H
#define MT_SIDECAR_PACE_H

#include <stdint.h>

#include "sidecar/encoder.h"

#define MT_PACE_EVENTS_MAX                                                    \
	8192u /* events between two looks; less than a millisecond of merging \
	       */
#define MT_PACE_EVENTS_MIN 256u
#define MT_PACE_WAIT_NS	   UINT64_C(10000000) /* at most, whatever was learned before */

struct mt_pace {
	uint64_t due_ns; /* when the next events may come */
};

/*
 * The batch being filled holds `filled` events, fewer than it can. Returns how long to wait now
 * (0: go on) before as many as *ret_events more are put into it; then it is to be asked again.
 */
uint64_t mt_pace_next(struct mt_pace *pace, const struct mt_encoder_load *load, uint32_t filled,
		      uint64_t now_ns, uint32_t *ret_events);

#endif
