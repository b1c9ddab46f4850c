# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 17: an LD_PRELOAD of the user's is kept, behind ours; the tool may be called by a relative
# path, from another folder, and the program may change its folder before it execs.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
truncate -s "$COUNTER_BYTES" "$WORK/counts"
track run env >"$WORK/out" 2>"$WORK/err"
ours=$(sed -n 's/^LD_PRELOAD=//p' "$WORK/out")
tap_check "LD_PRELOAD is an absolute path" test "${ours#/}" != "$ours"
rm -f "$WORK/run"
LD_PRELOAD=$COUNTER "$LAUNCHER" -q -o "$WORK/run" -- env >"$WORK/out" 2>"$WORK/err"
tap_equal "the user's LD_PRELOAD stands behind ours" "$ours:$COUNTER" "$(sed -n 's/^LD_PRELOAD=//p' "$WORK/out")"
cd "${LAUNCHER%/*}" || exit 1
rm -f "$WORK/run"
"./${LAUNCHER##*/}" -q -o "$WORK/run" -- sh -c 'cd /; "$1" 1000 12345' sh "$PROGRAMS/blocks" 2>"$WORK/err"
tap_equal "by a relative path, with a change of folder" "0 1000" "$? $(count_size run 12345)"
tap_done
