/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the program forbids itself, and what that means for recording.
 */
#ifndef MT_PRELOAD_SANDBOX_H
#define MT_PRELOAD_SANDBOX_H

#include <stdint.h>

/* Notes the time by counter and clock; a filter may come that forbids asking again. By attach. */
void mt_sandbox_note_time(void);

/*
 * A child that shares our memory (vfork) and has set a filter: until it execs or ends, what we know
 * of filters is true for it; then its own are to be forgotten. Returns how many there were, for
 * mt_sandbox_resume_child() when its exec fails.
 */
uint32_t mt_sandbox_end_child(void);
void mt_sandbox_resume_child(uint32_t filters);

#endif
