/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Numbers and foreign text for people: memtrack's tables and messages.
 *
 * Threads: pure but for the buffers given.
 */
#ifndef MT_TOOLS_TEXT_H
#define MT_TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/replay.h"

/* 39 digits, 12 commas, the end. */
#define MT_SUM_CHARS 56u

/* Decimal, with commas between thousands or without; returns a place inside the buffer. */
const char *mt_sum_text(mt_sum value, bool commas, char buffer[static MT_SUM_CHARS]);

/* The word for so many of a thing: "frame" for 1, else "frames". */
const char *mt_plural(mt_sum count, const char *one, const char *more);

/* "1.5 MiB"; exact below 1 KiB. */
const char *mt_size_text(mt_sum bytes, char buffer[static MT_SUM_CHARS]);

/* "12.345 s", "1.234 ms", "900 ns". */
const char *mt_time_text(uint64_t ns, char buffer[static MT_SUM_CHARS]);

/*
 * Text of an artifact made harmless for a terminal: control characters and bytes that are not
 * ASCII become '?', but for valid UTF-8. At most cap - 1 bytes; cut text ends in "...".
 */
const char *mt_clean_text(const char *text, size_t len, char *buffer, size_t cap);

/*
 * Prints one word of a command as a shell that knows $'..' would take it back: plain where no
 * character of it means anything to a shell, else in quotes. Control characters and bytes that are
 * not UTF-8 come as escapes, so that it stays on its line. Of a word longer than MT_WORD_MAX bytes
 * only the head is printed, and "..." behind the quotes.
 */
#define MT_WORD_MAX 4096u
void mt_print_shell_word(FILE *stream, const char *text, size_t len);

#endif
