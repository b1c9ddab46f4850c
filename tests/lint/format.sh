# SPDX-License-Identifier: MIT OR Apache-2.0
# The C files are as clang-format 14 lays them out; other versions differ in details.
. "$MT_SRCDIR/tests/lint/lib.sh"
tool=
for name in clang-format-14 clang-format; do
	if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then
		tool=$name
		break
	fi
done
test -n "$tool" || tap_skip_all "clang-format 14 is not installed"
test -f "$MT_SRCDIR/.clang-format" || tap_skip_all "no .clang-format in this source tree"
cd "$MT_SRCDIR" || exit 1
bad=$(source_files '*.[ch]' '*.cc' | xargs "$tool" --style=file --dry-run -Werror 2>&1 |
	sed -n 's/^\([^:]*\):[0-9]*:.*clang-format-violations.*/\1/p' | sort -u)
tap_equal "format: every C file is laid out by clang-format 14" "" "$bad"
tap_done
