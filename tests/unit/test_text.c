/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/text.h"

/* The word as it is printed; the caller frees it. */
static char *quoted(const char *text, size_t len)
{
	char *out = NULL;
	size_t size;
	FILE *stream = open_memstream(&out, &size);

	cr_assert_not_null(stream);
	mt_print_shell_word(stream, text, len);
	fclose(stream);
	return out;
}

Test(text, words_come_as_a_shell_takes_them)
{
	static const struct {
		const char *text;
		const char *want;
	} words[] = {
		{ "--level=3", "--level=3" },
		{ "", "''" },
		{ "a b", "'a b'" },
		{ "back\\slash $x", "'back\\slash $x'" },
		{ "it's", "$'it\\'s'" },
		{ "first\nsecond\t\\", "$'first\\nsecond\\t\\\\'" },
		{ "\033[31m1", "$'\\033[31m1'" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "\xc2\x9b", "$'\\302\\233'" },
		{ "\xff", "$'\\377'" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char *out = quoted(words[i].text, strlen(words[i].text));

		cr_assert_str_eq(out, words[i].want);
		free(out);
	}
}

Test(text, a_long_word_is_cut)
{
	static char text[MT_WORD_MAX + 1];
	char *out;

	memset(text, 'x', sizeof(text));
	out = quoted(text, sizeof(text));
	cr_assert_eq(strlen(out), MT_WORD_MAX + 3);
	cr_assert_str_eq(out + MT_WORD_MAX, "...");
	free(out);
}
