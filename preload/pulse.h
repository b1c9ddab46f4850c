/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How long an image waits for the sidecar's word. A sidecar that is stopped cannot answer; one wait
 * of --max-wait is what that may cost a whole tree of processes. So images tell each other through
 * struct mt_pulse (common/control.h), which lies in a file in the session's directory. An image
 * gives up
 *   - when another one has, and the sidecar has shown no sign of life since;
 *   - when the last sign of life is --max-wait old, and nothing came in a short look of its own;
 *   - when it has seen none for so long itself;
 *   - after MT_HELLO_WAIT_MS, whatever the file says; so too where there is none (a process that
 *     cannot see the directory).
 * The file is looked at only when no answer came at once.
 *
 * Calls nothing of libc that could allocate; errno stays.
 */
#ifndef MT_PRELOAD_PULSE_H
#define MT_PRELOAD_PULSE_H

#include <stdbool.h>
#include <stdint.h>

struct mt_pulse_wait {
	const char *directory; /* of the session; may be empty */
	uint64_t began_ns;
	uint64_t beat_ns;    /* the last sign of life that was seen; 0: not looked yet */
	uint64_t unmoved_ns; /* since when */
};

/* The wait begins. `directory` is to outlive it. */
void mt_pulse_begin(struct mt_pulse_wait *wait, const char *directory);

/* No answer came by now. Returns false when it is not worth while to wait on. */
bool mt_pulse_go_on(struct mt_pulse_wait *wait);

#endif
