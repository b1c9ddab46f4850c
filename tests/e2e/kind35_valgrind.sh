# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 35, valgrind: a program that runs under valgrind works as without us, valgrind finds in it what
# it finds without us, and the artifact says what was seen.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_command valgrind
bounded 60 valgrind -q --leak-check=full --error-exitcode=9 "$PROGRAMS/blocks" 10 333 >"$WORK/out.alone" 2>"$WORK/err.alone"
alone=$?
test $alone -eq 0 || test $alone -eq 9 || tap_skip_all "valgrind does not run here"
bounded 90 "$LAUNCHER" -o "$WORK/run" -- valgrind -q --leak-check=full --error-exitcode=9 \
	"$PROGRAMS/blocks" 10 333 >"$WORK/out" 2>"$WORK/err"
tap_equal "valgrind ends as by itself" $alone $?
tap_equal "the program's output is its own" "$(cat "$WORK/out.alone")" "$(cat "$WORK/out")"
tap_equal "valgrind finds as many leaked blocks" "$(grep -c 'are definitely lost\|are still reachable' "$WORK/err.alone")" \
	"$(grep -c 'are definitely lost\|are still reachable' "$WORK/err")"
tap_check "the run is summed up" grep -q '^memtrack: .*events' "$WORK/err"
tap_check "the artifact is whole" "$MEMTRACK" verify "$WORK/run"
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
got=$(count_size run 333)
if test "$got" -eq 10; then
	tap_ok "the blocks are recorded"
else
	tap_check "$got of 10 blocks are recorded, and stat names the image" grep -q 'valgrind\|memcheck' "$WORK/stat"
fi
tap_done
