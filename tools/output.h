/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Standard output of a command: whether all of it has arrived.
 */
#ifndef MT_TOOLS_OUTPUT_H
#define MT_TOOLS_OUTPUT_H

#include <stddef.h>
#include <stdio.h>

/*
 * Ends the output. Returns MT_EXIT_DONE, or MT_EXIT_FAILED having said why; a reader that has gone
 * away (head, less) needs no message.
 */
int mt_output_end(FILE *out);

/* Writes all bytes. Returns 0 or a negative errno. */
int mt_output_write(int fd, const void *bytes, size_t len);

/* The message of mt_output_end() for a negative errno. Returns MT_EXIT_FAILED. */
int mt_output_failed(int error);

#endif
