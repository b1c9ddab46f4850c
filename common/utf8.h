/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * UTF-8 as the artifact's strings have to be: no overlong forms, no
 * surrogates, nothing above U+10FFFF. What is not valid is replaced by U+FFFD,
 * one for each longest run of bytes that a valid sequence could begin with.
 *
 * Thread rule: pure functions.
 */
#ifndef MT_COMMON_UTF8_H
#define MT_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define MT_UTF8_REPLACEMENT	"\xef\xbf\xbd"
#define MT_UTF8_REPLACEMENT_LEN 3u

/*
 * Looks at the character at the head of s[0, len), len > 0. Returns how many
 * bytes to step over; *ret_valid says whether they are one valid character or
 * bytes to replace.
 */
size_t mt_utf8_step(const char *s, size_t len, bool *ret_valid);
bool mt_utf8_valid(const char *s, size_t len);
/* The length of s after replacement. */
size_t mt_utf8_clean_len(const char *s, size_t len);
/* Writes s after replacement: mt_utf8_clean_len() bytes, no NUL. */
void mt_utf8_clean(const char *s, size_t len, char *out);

#endif
