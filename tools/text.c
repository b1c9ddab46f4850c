/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

const char *mt_sum_text(mt_sum value, bool commas, char buffer[static MT_SUM_CHARS])
{
	char *at = buffer + MT_SUM_CHARS - 1;
	unsigned digits = 0;

	*at = 0;
	do {
		if (commas && digits && digits % 3 == 0)
			*--at = ',';
		*--at = (char)('0' + (unsigned)(value % 10));
		value /= 10;
		digits++;
	} while (value);
	return at;
}

const char *mt_size_text(mt_sum bytes, char buffer[static MT_SUM_CHARS])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(buffer, MT_SUM_CHARS, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return buffer;
}

const char *mt_time_text(uint64_t ns, char buffer[static MT_SUM_CHARS])
{
	if (ns < 1000)
		snprintf(buffer, MT_SUM_CHARS, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(buffer, MT_SUM_CHARS, "%.3f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buffer, MT_SUM_CHARS, "%.3f ms", (double)ns / 1e6);
	else
		snprintf(buffer, MT_SUM_CHARS, "%.3f s", (double)ns / 1e9);
	return buffer;
}

const char *mt_clean_text(const char *text, size_t len, char *buffer, size_t cap)
{
	size_t room = cap - 1;
	bool cut = len > room;
	char *out = buffer;

	if (cut)
		len = room - 3;
	while (len) {
		bool valid;
		size_t step = mt_utf8_step(text, len, &valid);
		unsigned char first = (unsigned char)text[0];
		/* U+0080 to U+009F control terminals as the characters below the space do. */
		bool control = first < 0x20 || first == 0x7f ||
			       (first == 0xc2 && step == 2 && (unsigned char)text[1] < 0xa0);

		if (valid && !control) {
			memcpy(out, text, step);
			out += step;
		} else {
			*out++ = '?';
		}
		text += step;
		len -= step;
	}
	strcpy(out, cut ? "..." : "");
	return buffer;
}
