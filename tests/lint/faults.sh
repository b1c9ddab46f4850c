# SPDX-License-Identifier: MIT OR Apache-2.0
# Each function that the sidecar and memtrack call is let fail by the fault test, or is listed as one
# that cannot, or fails by another. So a new call brings its fault with it.
. "$MT_SRCDIR/tests/lint/lib.sh"
test -z "${MT_ASAN:-}" || tap_skip_all "the sanitizers' runtime is called too"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

sed -n 's/^\tX(\([A-Za-z0-9_]*\),.*/\1/p' "$MT_SRCDIR/tests/e2e/fault_calls.h" | sort -u >"$work/table"
sed -e 's/#.*//' -e 's/[ \t]*$//' "$MT_SRCDIR/tests/lint/faults.allow" | grep . |
	sed -e 's/[.]/\\./g' -e 's/\*/.*/g' >"$work/allow"
tap_check "faults: the table has entries" test -s "$work/table"

for program in memtrack-sidecar memtrack; do
	built=$MT_BUILDDIR/.libs/$program
	test -x "$built" || built=$MT_BUILDDIR/$program
	test -x "$built" || tap_skip_all "$program was not built"
	nm -D --undefined-only "$built" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$work/called"
	tap_equal "faults: each call of $program fails in a test, or is said not to" "" \
		"$(comm -23 "$work/called" "$work/table" | grep -vxf "$work/allow")"
done
tap_equal "faults: none is in the table and listed as one that cannot fail" "" \
	"$(grep -xf "$work/allow" "$work/table")"
tap_done
