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
# TOOL: the ten blocks, or why they are not there.
told() {
	bounded 90 "$LAUNCHER" -q --require-complete -o "$WORK/$1.mt" -- valgrind -q --tool="$1" --log-file=/dev/null \
		"$PROGRAMS/blocks" 10 333 >/dev/null 2>&1
	status=$?
	listed=$("$MEMTRACK" stat "$WORK/$1.mt" 2>&1 | grep -c 'own-malloc')
	echo "$(count_size "$1.mt" 333) blocks, $listed listed, $status"
}

# Tools with a heap of their own redirect malloc, ours too; the others leave it alone.
tap_equal "memcheck: the image is listed" "0 blocks, 1 listed, 125" "$(told memcheck)"
tap_equal "massif: the image is listed" "0 blocks, 1 listed, 125" "$(told massif)"
tap_equal "none: the blocks are recorded" "10 blocks, 0 listed, 0" "$(told none)"
tap_done
