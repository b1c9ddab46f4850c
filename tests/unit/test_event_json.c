/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the golden files do not show: strange strings, names, wrong events. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/event_json.h"
#include "common/utf8.h"

static void expect_string(const char *text, size_t len, const char *want)
{
	struct mt_buf out = { 0 };

	cr_assert(!mt_json_string(text, len, &out));
	cr_expect(out.len == strlen(want) && !memcmp(out.data, want, out.len), "%.*s is not %s",
		  (int)out.len, out.data, want);
	mt_buf_fini(&out);
}

Test(event_json, strings_are_escaped)
{
	expect_string("", 0, "\"\"");
	expect_string("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	expect_string("\n\t\0\x1f", 4, "\"\\n\\u0009\\u0000\\u001f\"");
	expect_string("\x7f", 1, "\"\\u007f\"");
	expect_string("\xc3\xb6/\xf0\x9f\x98\x80", 7, "\"\xc3\xb6/\xf0\x9f\x98\x80\"");
	expect_string("a\xff", 2, "\"a\xef\xbf\xbd\"");
	expect_string("\xe2\x82", 2, "\"\xef\xbf\xbd\"");
}

Test(event_json, extremes_are_written_whole)
{
	struct mt_event e = { .type = MT_EVENT_RMAP,
			      .pid = INT32_MIN,
			      .tid = INT32_MAX,
			      .timestamp_ns = UINT64_MAX,
			      .addr = UINT64_MAX,
			      .member = INT32_MIN,
			      .delta = INT64_MIN };
	static const char want[] =
		"{\"pid\":-2147483648,\"tid\":2147483647,\"timestamp\":18446744073709551615,"
		"\"addr\":18446744073709551615,\"type\":\"Rmap\",\"member\":-2147483648,"
		"\"delta\":-9223372036854775808}\n";
	struct mt_buf out = { 0 };

	cr_assert(!mt_event_json(&e, &out));
	cr_expect(out.len == sizeof(want) - 1 && !memcmp(out.data, want, out.len));
	mt_buf_fini(&out);
}

Test(event_json, types_are_found_by_name)
{
	for (uint8_t type = 1; type < MT_EVENT_TYPES; type++)
		cr_expect_eq(mt_event_type_find(mt_event_type_name(type)), type);
	cr_expect_eq(mt_event_type_find("malloc"), MT_EVENT_MALLOC);
	cr_expect_eq(mt_event_type_find("Mallo"), MT_EVENT_NONE);
	cr_expect_null(mt_event_type_name(MT_EVENT_NONE));
	cr_expect_null(mt_event_type_name(MT_EVENT_TYPES));
}

Test(event_json, no_event_is_refused)
{
	struct mt_event e = { .type = MT_EVENT_NONE };
	struct mt_buf out = { 0 };

	cr_expect_eq(mt_event_json(&e, &out), -EINVAL);
	e.type = MT_EVENT_TYPES;
	cr_expect_eq(mt_event_json(&e, &out), -EINVAL);
	cr_expect_eq(out.len, 0);
	mt_buf_fini(&out);
}

/* Every lead byte with continuations of all sorts: what is called valid has one decoding. */
Test(utf8, only_the_one_form_of_a_character_is_valid)
{
	size_t valid_two = 0, valid_three = 0;

	for (unsigned int a = 0x80; a < 0x100; a++) {
		for (unsigned int b = 0; b < 0x100; b++) {
			char two[2] = { (char)a, (char)b };

			valid_two += mt_utf8_valid(two, 2) && a >= 0xc0;
			for (unsigned int c = 0x80; c < 0x100 && a >= 0xe0; c++) {
				char three[3] = { (char)a, (char)b, (char)c };

				valid_three += mt_utf8_valid(three, 3);
			}
		}
	}
	/* U+0080 to U+07FF; U+0800 to U+FFFF without the 2,048 surrogates. */
	cr_expect_eq(valid_two, 0x780);
	cr_expect_eq(valid_three, 0xf800 - 0x800);
}

Test(utf8, cleaned_text_is_valid_and_as_long_as_foretold)
{
	char text[64], clean[192];
	uint32_t x = 1;

	for (int i = 0; i < 20000; i++) {
		size_t len = (x >> 8) % sizeof(text), n;

		for (size_t j = 0; j < len; j++) {
			x = x * 1664525 + 1013904223;
			text[j] = (char)(x >> 24);
		}
		x = x * 1664525 + 1013904223;
		n = mt_utf8_clean_len(text, len);
		cr_assert_leq(n, sizeof(clean));
		mt_utf8_clean(text, len, clean);
		cr_assert(mt_utf8_valid(clean, n));
	}
}
