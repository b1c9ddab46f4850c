# SPDX-License-Identifier: MIT OR Apache-2.0
# docs/failure-kinds.md and the tests: every kind names tests that are there and run, every test that
# is called after a kind stands in the table, and names all its kinds in its first lines.
. "$MT_SRCDIR/tests/lint/lib.sh"
page=$MT_SRCDIR/docs/failure-kinds.md
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# "KIND TEST", one a line.
sed -n 's/^| \([0-9]*\) |.*| \([^|]*\) |$/\1 \2/p' "$page" | while read -r kind tests; do
	echo "$tests" | tr ',' '\n' | sed -n "s/^ *\`\([a-z0-9_]*\.sh\)\`\$/$kind \1/p"
done >"$work/table"
grep -c '^| [0-9]' "$page" >"$work/rows"
tap_equal "kinds: the table has fifty, each with a test, each once" "50 50 50" \
	"$(cat "$work/rows") $(cut -d' ' -f1 "$work/table" | sort -u | wc -l) $(sed -n 's/^| \([0-9]*\) |.*/\1/p' "$page" | sort -u | wc -l)"

missing=
unnamed=
idle=
while read -r kind test; do
	file=$MT_SRCDIR/tests/e2e/$test
	if ! test -f "$file"; then
		missing="$missing $kind:$test"
		continue
	fi
	grep -q "tests/e2e/$test" "$MT_SRCDIR"/tests/*.mk || idle="$idle $test"
	# The first paragraph of comments, with "Kind 7" or "Kinds 7, 8 and 9".
	sed -n '2,/^[^#]/s/^#//p' "$file" | tr '\n' ' ' | grep -oE '[Kk]inds? [0-9]+((, | and )[0-9]+)*' |
		grep -oE '[0-9]+' | grep -qx "$kind" || unnamed="$unnamed $kind:$test"
done <"$work/table"
tap_equal "kinds: every test of the table is there" "" "$missing"
tap_equal "kinds: every test of the table is run by make check" "" "$idle"
tap_equal "kinds: every test names its kinds in its first lines" "" "$unnamed"
tap_equal "kinds: every test called after a kind stands in the table" "" \
	"$(cd "$MT_SRCDIR/tests/e2e" && for test in kind*.sh; do
		grep -q " $test\$" "$work/table" || echo "$test"
	done)"
tap_done
