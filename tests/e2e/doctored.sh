# SPDX-License-Identifier: MIT OR Apache-2.0
# The proof can fail: real artifacts with one fault each are found out, by the comparison with the
# independent count, and by memtrack verify where the fault contradicts the rest.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
counted "a real run" sh -c '"$1" 20 11; "$2" 3 500; "$3"; exit 0' sh "$PROGRAMS/blocks" "$PROGRAMS/passer" \
	"$PROGRAMS/entries"
for fault in none split malloc-missing free-missing malloc-twice free-twice one-byte-more other-process \
	time-back free-first; do
	rm -f "$WORK/changed"
	"$PYTHON" -B "$E2E/made.py" doctor $fault "$WORK/counted" "$WORK/changed" || exit 1
	wanted=1
	verdict=1
	case $fault in
	none | split) wanted=0 verdict=0 ;;
	malloc-missing | free-missing | one-byte-more | other-process) verdict=any ;;
	esac
	"$PYTHON" -B "$E2E/compare.py" --uncounted-root 1 "$WORK/changed" "$WORK/counts" >"$WORK/said" 2>"$WORK/trace"
	tap_equal "$fault: the comparison gives $wanted" $wanted "$?$(head -n 1 "$WORK/trace")"
	test $verdict != any || continue
	"$MEMTRACK" verify "$WORK/changed" >"$WORK/said" 2>&1
	tap_equal "$fault: verify gives $verdict" $verdict $?
done
tap_done
