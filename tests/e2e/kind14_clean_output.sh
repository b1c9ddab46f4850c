# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 14: nothing of ours in the program's output: stdout and stderr are the same byte for byte,
# also when descriptors are closed or full.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cat >"$WORK/talk.sh" <<'END'
echo '{"a": 1}'
echo "to stderr" >&2
/bin/echo from a child
/bin/ls /no/such/place
exit 0
END
sh "$WORK/talk.sh" >"$WORK/plain.out" 2>"$WORK/plain.err"
track run sh "$WORK/talk.sh" >"$WORK/out" 2>"$WORK/err"
tap_check "stdout is the same" cmp "$WORK/plain.out" "$WORK/out"
tap_check "stderr is the same with -q" cmp "$WORK/plain.err" "$WORK/err"
rm -f "$WORK/run"
"$LAUNCHER" -o "$WORK/run" -- sh "$WORK/talk.sh" >"$WORK/out" 2>"$WORK/err"
tap_check "stdout is the same without -q" cmp "$WORK/plain.out" "$WORK/out"
tap_equal "stderr has one line more without -q" 1 "$(diff "$WORK/plain.err" "$WORK/err" | grep '^>' | grep -vc 'not recorded without')"
tap_equal "stderr has lost nothing without -q" 0 "$(diff "$WORK/plain.err" "$WORK/err" | grep -c '^<')"

blocks=$PROGRAMS/blocks
track run "$blocks" 1000 12345 >&- 2>"$WORK/err"
tap_equal "with stdout closed" "0 1000" "$? $(count_size run 12345)"
track run "$blocks" 1000 12345 <&- 2>"$WORK/err"
tap_equal "with stdin closed" "0 1000" "$? $(count_size run 12345)"
rm -f "$WORK/run"
"$LAUNCHER" -o "$WORK/run" -- "$blocks" 1000 12345 <&- >&- 2>&-
tap_equal "with all three closed" "0 1000" "$? $(count_size run 12345)"
track run "$blocks" 1000 12345 >/dev/full 2>/dev/full
tap_equal "with a full device" "0 1000" "$? $(count_size run 12345)"
track run sh -c 'echo x' >/dev/full 2>"$WORK/err"
tap_check "with a full device the program's own error is its own" test $? -eq 0 -o -s "$WORK/err"
tap_done
