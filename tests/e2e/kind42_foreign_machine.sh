# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 42: children for another machine: nothing on stderr for each of them, named as untracked.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cc=$(make_value CC)
$cc -m32 -o "$WORK/thirty_two" "$E2E/blocks.c" -pthread 2>/dev/null && "$WORK/thirty_two" 1 1 ||
	tap_skip_all "no 32-bit programs can be made and run here"
"$LAUNCHER" -o "$WORK/run" -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do "$1" 1 1; done; "$2" 100 444' sh \
	"$WORK/thirty_two" "$PROGRAMS/blocks" 2>"$WORK/err"
tap_equal "the command ends as itself" 0 $?
tap_equal "its sibling is tracked" 100 "$(count_size run 444)"
tap_equal "nothing of ld.so on stderr" 0 "$(grep -c 'ld.so' "$WORK/err")"
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
tap_check "stat names them" grep -q thirty_two "$WORK/stat"
tap_done
