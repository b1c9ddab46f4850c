# SPDX-License-Identifier: MIT OR Apache-2.0
# A program that writes over the memory it shares with the sidecar, all the time, spoils its own
# records at most: the run ends as the command does, the damage is said, and what others record
# meanwhile, before and after, is exact.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
seconds=$(long 1.5 20)
most_kib=$(long 400000 400000)
test -z "${MT_ASAN:-}" || most_kib=2000000

test $# -gt 0 || set -- random chosen flip claims list twice
for how; do
	# The shell is a process like others, and so are those it starts beside the hostile one.
	rm -f "$WORK/run"
	bounded 120 "$LAUNCHER" -o "$WORK/run" -- sh -c '
		"$1/blocks" 500 1111
		"$1/forker" 3 &
		"$1/hostile" "$2" "$3" $$ $PPID $! &
		hostile=$!
		"$1/blocks" 20000 2222 & a=$!
		"$1/blocks" 700 3333 _exit & b=$!
		wait $a $b
		wait $hostile
		"$1/blocks" 900 4444
		grep VmHWM /proc/$PPID/status | tr -dc 0-9 >"$4"
		exit 7' sh "$PROGRAMS" "$how" "$seconds" "$WORK/hwm" 2>"$WORK/err" </dev/null
	tap_equal "$how: ends as the command does" 7 $?
	for pair in 1111:500 2222:20000 3333:700 4444:900; do
		tap_equal "$how: others are exact (${pair%:*})" "${pair#*:}" "$(count_size run "${pair%:*}")"
	done
	if grep -q 'Sanitizer\|runtime error' "$WORK/err"; then
		tap_fail "$how: nothing out of bounds" "$WORK/err"
	else
		tap_ok "$how: nothing out of bounds"
	fi
	tap_check "$how: the damage is said" grep -q 'overwrote the recording memory\|lost [0-9]* record' "$WORK/err"
	tap_check "$how: the sidecar does not grow ($(cat "$WORK/hwm") KiB)" \
		test "$(cat "$WORK/hwm")" -lt "$most_kib"
done

# One stray write is enough to stop a stream. Nothing comes back from it: what the program records
# then is lost, and counted, but it does not wait for ever.
rm -f "$WORK/run"
bounded 60 "$LAUNCHER" -o "$WORK/run" --max-wait 2 -- "$PROGRAMS/hostile" once 2>"$WORK/err" </dev/null
tap_verdict "one stray write: the program goes on" $? "$WORK/err"
tap_check "one stray write: the damage is said" grep -q 'overwrote the recording memory' "$WORK/err"
tap_check "one stray write: the loss is counted" test "$(lost run)" -gt 1000000

# No count of it hides what others lost, by coming round to 0.
rm -f "$WORK/run"
bounded 60 "$LAUNCHER" --require-complete -o "$WORK/run" -- "$PROGRAMS/hostile" counts 2>"$WORK/err" </dev/null
tap_equal "a count of lost records that is too large: the run is not complete" 125 $?
tap_equal "a count of lost records that is too large: so many, and not none" "1 18446744073709551615" \
	"$(grep -c ', 18446744073709551615 lost' "$WORK/err") $(lost run)"
tap_done
