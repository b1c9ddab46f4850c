/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the program forbids itself, and what that means for recording.
 */
#ifndef MT_PRELOAD_SANDBOX_H
#define MT_PRELOAD_SANDBOX_H

/* Notes the time by counter and clock; a filter may come that forbids asking again. By attach. */
void mt_sandbox_note_time(void);

#endif
