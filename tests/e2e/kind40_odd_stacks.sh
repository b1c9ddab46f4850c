# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 40: malloc is called with a wild frame pointer, from a code page without unwind information,
# from a coroutine, from the last page of a stack, from a signal's own stack: the program is as
# without us, and every block is there. (Stacks are not captured; what is shown is that the hooks
# touch none, and need less than a page of it.)
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
rounds=$(long 5000 200000)
"$PROGRAMS/odd_stacks" 100
plain=$?
WANT_STATUS=$plain
counted "odd stacks" "$PROGRAMS/odd_stacks" "$rounds"
sizes="81003 81005"
if test "$plain" -eq 0; then
	sizes="$sizes 81001 81002 81004 81006"
else
	tap_skip "frames and code pages" "this machine's code is not known to the test ($plain)"
fi
# Small buffers: the way through their change is walked from everywhere too.
TRACK_OPTIONS="--buffer-size 64K"
tracked "odd stacks, small buffers" "$PROGRAMS/odd_stacks" "$rounds"
dump run >"$WORK/all"
for size in $sizes; do
	tap_equal "blocks of $size bytes: all of them" "$rounds" "$(grep -c "\"type\":\"Malloc\",\"size\":${size}[,}]" "$WORK/all")"
done
tap_equal "nothing is lost" 0 "$(lost run)"
tap_done
