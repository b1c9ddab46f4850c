/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

size_t mt_utf8_step(const char *s, size_t len, bool *ret_valid)
{
	const uint8_t *p = (const uint8_t *)s;
	/* The second byte's range shuts out overlong forms, surrogates and > U+10FFFF. */
	uint8_t low = 0x80, high = 0xbf;
	size_t need, i;

	*ret_valid = true;
	if (p[0] < 0x80)
		return 1;
	*ret_valid = false;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 1;
	need = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	for (i = 1; i < need; i++) {
		if (i >= len || p[i] < low || p[i] > high)
			return i;
		low = 0x80;
		high = 0xbf;
	}
	*ret_valid = true;
	return need;
}

bool mt_utf8_valid(const char *s, size_t len)
{
	bool valid = true;

	while (len && valid) {
		size_t n = mt_utf8_step(s, len, &valid);

		s += n;
		len -= n;
	}
	return valid;
}

size_t mt_utf8_clean_len(const char *s, size_t len)
{
	size_t sum = 0;

	while (len) {
		bool valid;
		size_t n = mt_utf8_step(s, len, &valid);

		sum += valid ? n : MT_UTF8_REPLACEMENT_LEN;
		s += n;
		len -= n;
	}
	return sum;
}

void mt_utf8_clean(const char *s, size_t len, char *out)
{
	while (len) {
		bool valid;
		size_t n = mt_utf8_step(s, len, &valid);

		if (valid) {
			memcpy(out, s, n);
			out += n;
		} else {
			memcpy(out, MT_UTF8_REPLACEMENT, MT_UTF8_REPLACEMENT_LEN);
			out += MT_UTF8_REPLACEMENT_LEN;
		}
		s += n;
		len -= n;
	}
}
