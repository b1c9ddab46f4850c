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

/*
 * For a process that outlives those who gave it its standard error: nobody is to wait for its end
 * because of us. A terminal or a file is kept: nobody waits for the end of those. A pipe is let go;
 * a line is still said there when somebody reads it at that moment. Anything else is let go for
 * good.
 */
void mt_say_let_go(void);

/* Errors are only kept for mt_say_last_error(), which another process will say. */
void mt_say_hold_errors(bool hold);

/* An error of our own: always said. */
__attribute__((format(printf, 1, 2))) void mt_say_error(const char *format, ...);

/* Warnings and the summary: not said when quiet. */
__attribute__((format(printf, 1, 2))) void mt_say_note(const char *format, ...);

/* The last error that was said, without the prefix; empty when there was none. */
const char *mt_say_last_error(void);

#endif
