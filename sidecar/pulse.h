/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sidecar's sign of life for images that wait for its word: struct mt_pulse (common/control.h)
 * in a file in the session's directory. It is the main thread's, which is the one that answers; so
 * it stops when the sidecar is stopped, and not when only the output stands still.
 *
 * What images write there is never read here.
 *
 * Threads: the main one.
 */
#ifndef MT_SIDECAR_PULSE_H
#define MT_SIDECAR_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/control.h"

struct mt_pulse_writer {
	int fd; /* -1: images do without */
	struct mt_pulse pulse;
	uint64_t every_ns;
	uint64_t in_vain_ns; /* images give up when no sign of life came for so long */
	uint64_t stood_from_ns, stood_to_ns; /* the last time that none came for so long */
};

/* Makes the file, as the user that the images run as. Without it they wait each for itself. */
void mt_pulse_open(struct mt_pulse_writer *writer, const char *directory, uint64_t max_wait_ms);

/* Gives a sign of life, if the last one is old enough. To be called at least so often: */
int mt_pulse_every_ms(const struct mt_pulse_writer *writer);
void mt_pulse_beat(struct mt_pulse_writer *writer);

/* Was there no sign of life at `time_ns` (CLOCK_MONOTONIC), for so long that images gave up? */
bool mt_pulse_stood_still(const struct mt_pulse_writer *writer, uint64_t time_ns);

void mt_pulse_close(struct mt_pulse_writer *writer);

#endif
