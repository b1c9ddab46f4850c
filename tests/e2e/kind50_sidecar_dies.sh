# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 50: the sidecar is killed. The program goes on at full speed and ends by itself; what had been
# written can be read.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
start=$(date +%s)
bounded 40 sh -c '"$1" -q -o "$2" -- sh -c '\''"$1" 1000 12345; kill -9 $PPID; "$2" 2 200000 churn
echo $? >"$3"'\'' sh "$3" "$4" "$5"' sh "$LAUNCHER" "$WORK/run" "$PROGRAMS/blocks" "$PROGRAMS/passer" \
	"$WORK/status" 2>"$WORK/err"
wait_for 30 test -s "$WORK/status"
tap_equal "sidecar killed: the program ends well" 0 "$(cat "$WORK/status" 2>/dev/null)"
tap_check "sidecar killed: without a wait of its whole length (10 s)" test $(($(date +%s) - start)) -lt 9
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
tap_check "sidecar killed: stat reads what is there" test -s "$WORK/stat"
# At its start, in the middle, at the program's end; it may also just stand still, and go then.
cat >"$WORK/when.sh" <<'END'
# when.sh SIGNAL WHEN STATUS_FILE BLOCKS PASSER
sidecar=$PPID
case $2 in
start) kill -"$1" "$sidecar"; "$5" 2 50000 churn ;;
middle) "$5" 2 200000 churn & sleep 0.05; kill -"$1" "$sidecar"; wait $! ;;
end) "$5" 2 50000 churn; kill -"$1" "$sidecar" ;;
esac
status=$?
test "$1" != STOP || kill -KILL "$sidecar"
# A new process of the tree.
"$4" 100 50001 && echo "$status" >"$3"
END
for signal in KILL STOP SEGV; do
	for when in start middle end; do
		most=8000
		test "$signal $when" != "STOP start" || test "$(long short long)" = long || continue
		rm -f "$WORK/run" "$WORK/status"
		start=$(date +%s%N)
		bounded 60 "$LAUNCHER" -q --max-wait 500ms -o "$WORK/run" -- sh "$WORK/when.sh" $signal $when \
			"$WORK/status" "$PROGRAMS/blocks" "$PROGRAMS/passer" >/dev/null 2>"$WORK/err"
		wait_for 30 test -s "$WORK/status"
		tap_equal "SIG$signal at the $when: the tree ends well" 0 "$(cat "$WORK/status" 2>/dev/null)"
		took=$((($(date +%s%N) - start) / 1000000))
		tap_check "SIG$signal at the $when: at full speed ($took ms)" test "$took" -lt "$most"
		if test -s "$WORK/run"; then
			"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
			tap_check "SIG$signal at the $when: what is there can be read" test $? -le 3 -a -s "$WORK/stat"
		fi
	done
done
tap_done
