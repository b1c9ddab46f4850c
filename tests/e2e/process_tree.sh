# SPDX-License-Identifier: MIT OR Apache-2.0
# The process tree in the artifact (who started whom, what each executed, how each ended) is the one
# that strace shows for the same script run plain.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
need_command strace
strace -f -e trace=process -o "$WORK/trial" true 2>/dev/null || tap_skip_all "no right to trace processes"
cat >"$WORK/script.sh" <<'END'
ulimit -c 0
/bin/true
/bin/false
(exit 5)
(/bin/true; (exit 6); /bin/sh -c 'exit 8')
x=$(/bin/echo words | /bin/cat)
/bin/sh -c 'kill -9 $$'
/bin/sh -c 'kill -15 $$' &
wait
/bin/sh -c 'exec /bin/sh -c "exec /bin/true"'
/no/such/program
ls /proc/self/exe >/dev/null
find . -maxdepth 0 -exec /bin/true {} \; -exec /bin/false {} \;
exit 9
END
cd "$WORK" || exit 1
strace -f -e trace=process -o "$WORK/traced" sh "$WORK/script.sh" >/dev/null 2>&1
tap_equal "the script run plain ends with 9" 9 $?
PYTHONPATH=$E2E
export PYTHONPATH
"$PYTHON" -B "$E2E/tree.py" strace "$WORK/traced" >"$WORK/wanted"
tap_check "strace shows a tree" test "$(wc -l <"$WORK/wanted")" -ge 15

# without_ends FILE: perf does not know how processes ended, but for the command itself.
without_ends()
{
	sed -e 's/^\( .*[^ ]\) *\(exit [0-9]*\|signal [0-9]*\|?\)$/\1/' -e 's/^ *\(exit [0-9]*\|signal [0-9]*\|?\)$/-/' "$1"
}

for bpf in auto full basic; do
	TRACK_OPTIONS=--bpf=$bpf
	track run sh "$WORK/script.sh" >/dev/null 2>"$WORK/err"
	status=$?
	if test $status -eq 125; then
		tap_skip "--bpf=$bpf: the tree is that of strace" "it cannot be had here: $(head -n 1 "$WORK/err")"
		continue
	fi
	tap_equal "--bpf=$bpf: the script ends with 9" 9 $status
	"$MEMTRACK" stat --json "$WORK/run" >"$WORK/stat" 2>"$WORK/err"
	"$PYTHON" -B "$E2E/tree.py" artifact "$WORK/run" "$WORK/stat" >"$WORK/got" 2>"$WORK/err"
	cp "$WORK/wanted" "$WORK/shape"
	if "$MEMTRACK" stat "$WORK/run" | grep -q 'processes perf'; then
		without_ends "$WORK/wanted" >"$WORK/shape"
		without_ends "$WORK/got" >"$WORK/got.shape"
		mv "$WORK/got.shape" "$WORK/got"
	fi
	if diff "$WORK/shape" "$WORK/got" >"$WORK/difference"; then
		tap_ok "--bpf=$bpf: the tree is that of strace"
	else
		tap_fail "--bpf=$bpf: the tree is that of strace" "$WORK/difference" "$WORK/err"
	fi
done
tap_done
