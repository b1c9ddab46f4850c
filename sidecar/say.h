/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the sidecar says to the user: lines on standard error, each "memtrack: ..." and one write,
 * so that lines of several processes do not mix. Standard output is the program's alone.
 *
 * Threads: any, after mt_say_init.
 */
#ifndef MT_SIDECAR_SAY_H
#define MT_SIDECAR_SAY_H

#include <stdbool.h>

/* Quiet keeps errors only. */
void mt_say_init(bool quiet);

/* An error of our own: always said. */
__attribute__((format(printf, 1, 2))) void mt_say_error(const char *format, ...);

/* Warnings and the summary: not said when quiet. */
__attribute__((format(printf, 1, 2))) void mt_say_note(const char *format, ...);

/* The last error that was said, without the prefix; empty when there was none. */
const char *mt_say_last_error(void);

#endif
