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

const char *mt_plural(mt_sum count, const char *one, const char *more)
{
	return count == 1 ? one : more;
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

/* Whether a step of UTF-8 can stand in a terminal as it is. */
static bool is_printable(const char *text, size_t step, bool valid)
{
	unsigned char first = (unsigned char)text[0];

	/* U+0080 to U+009F control terminals as the characters below the space do. */
	return valid && first >= 0x20 && first != 0x7f &&
	       !(first == 0xc2 && step == 2 && (unsigned char)text[1] < 0xa0);
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

		if (is_printable(text, step, valid)) {
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

enum quotes { QUOTES_NONE, QUOTES_PLAIN, QUOTES_ESCAPED };

static enum quotes quotes_for(const char *text, size_t len)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_@%+=:,./-";
	enum quotes quotes = len ? QUOTES_NONE : QUOTES_PLAIN;

	for (size_t i = 0, step; i < len; i += step) {
		bool valid;

		step = mt_utf8_step(text + i, len - i, &valid);
		if (!is_printable(text + i, step, valid) || text[i] == '\'')
			return QUOTES_ESCAPED;
		if (step == 1 && !memchr(harmless, text[i], sizeof(harmless) - 1))
			quotes = QUOTES_PLAIN;
	}
	return quotes;
}

static void print_escaped(FILE *stream, char c)
{
	static const char named[][2] = {
		{ '\n', 'n' }, { '\t', 't' }, { '\r', 'r' }, { '\'', '\'' }, { '\\', '\\' }
	};

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (named[i][0] == c) {
			fprintf(stream, "\\%c", named[i][1]);
			return;
		}
	}
	/* Three digits, so that a digit behind it is not taken for one of them. */
	fprintf(stream, "\\%03o", (unsigned char)c);
}

void mt_print_shell_word(FILE *stream, const char *text, size_t len)
{
	static const char *const opening[] = { "", "'", "$'" };
	size_t shown = len > MT_WORD_MAX ? MT_WORD_MAX : len;
	enum quotes quotes = quotes_for(text, shown);

	fputs(opening[quotes], stream);
	for (size_t i = 0, step; i < shown; i += step) {
		bool valid;

		step = mt_utf8_step(text + i, shown - i, &valid);
		if (quotes != QUOTES_ESCAPED ||
		    (is_printable(text + i, step, valid) && text[i] != '\'' && text[i] != '\\'))
			fwrite(text + i, 1, step, stream);
		else
			for (size_t k = 0; k < step; k++)
				print_escaped(stream, text[i + k]);
	}
	fputs(quotes == QUOTES_NONE ? "" : "'", stream);
	fputs(shown < len ? "..." : "", stream);
}
