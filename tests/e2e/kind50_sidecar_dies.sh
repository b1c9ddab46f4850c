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
tap_check "sidecar killed: without a long wait" test $(($(date +%s) - start)) -lt 25
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
tap_check "sidecar killed: stat reads what is there" test -s "$WORK/stat"
tap_done
