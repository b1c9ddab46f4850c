# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 7: a background grandchild does not hold the run up; neither does its hold on our output.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

quick()
{
	tap_check "$1: returns at once ($2 s)" test "$2" -lt 5
}

start=$(date +%s)
track run sh -c 'sleep 20 >/dev/null 2>&1 & echo $! >"$1"' sh "$WORK/pid" 2>"$WORK/err"
tap_verdict "a daemon with its output closed: the run ends well" $? "$WORK/err"
quick "a daemon with its output closed" $(($(date +%s) - start))
tap_check "a daemon with its output closed: it lives on" kill -0 "$(cat "$WORK/pid")"
tap_equal "a daemon with its output closed: stat names it, and no other, as alive" "$(cat "$WORK/pid")" \
	"$("$MEMTRACK" stat --json "$WORK/run" | "$PYTHON" -c 'import json, sys
print(*json.load(sys.stdin)["alive"])')"
kill "$(cat "$WORK/pid")"

start=$(date +%s)
said=$(bounded 30 "$LAUNCHER" -q -o "$WORK/piped" -- sh -c 'setsid sleep 20 >/dev/null 2>&1 & echo $! >"$1"
echo hi' sh "$WORK/pid")
quick "a daemon in its own session, our output a pipe" $(($(date +%s) - start))
tap_equal "a daemon in its own session: the output is whole" "hi" "$said"
kill "$(cat "$WORK/pid")"
tap_check "a daemon in its own session: the artifact is complete" "$MEMTRACK" verify "$WORK/piped"

# Who holds our output holds it as long as without us, neither shorter nor longer.
start=$(date +%s%N)
said=$(bounded 30 "$LAUNCHER" -q -o "$WORK/held" -- sh -c 'sleep 2 & echo hi')
held=$((($(date +%s%N) - start) / 1000000))
tap_equal "a grandchild that holds the output: it is whole" "hi" "$said"
tap_check "a grandchild that holds the output: as long as it does ($held ms)" test "$held" -ge 1900 -a "$held" -lt 4000
tap_check "a grandchild that holds the output: the artifact is complete" "$MEMTRACK" verify "$WORK/held"

# The command closes its output and goes on: whoever reads it is not kept waiting by us.
"$LAUNCHER" -q -o "$WORK/closed" -- sh -c 'echo hi
exec >/dev/null 2>&1
i=0
until test -e "$1" || test $i -ge 300; do sleep 0.05; i=$((i + 1)); done' sh "$WORK/go" 2>"$WORK/err" | {
	cat >"$WORK/said"
	: >"$WORK/read"
} &
tap_check "output that the command has closed: its reader is done" wait_for 10 test -e "$WORK/read"
: >"$WORK/go"
wait
tap_equal "output that the command has closed: it is whole" "hi" "$(cat "$WORK/said")"

# The sidecar holds nothing of it itself, and is gone with the command.
sh -c 'exec "$1" -q -o "$2" -- sh -c "echo \$PPID; exec sleep 0.1"' sh "$LAUNCHER" "$WORK/gone" >"$WORK/sidecar"
tap_check "nothing of ours is left running" sh -c '! kill -0 "$(cat "$1")" 2>/dev/null' sh "$WORK/sidecar"
tap_equal "no process has our library's folder as its own" 0 "$(ls -l /proc/[0-9]*/exe 2>/dev/null |
	grep -c "$(cat "$WORK/sidecar")/exe.*memtrack-sidecar")"

# The grandchild is tracked, and goes on taking blocks after the end of the run.
track run sh -c '"$1" 2 100000000 churn >/dev/null 2>&1 & echo $! >"$2"' sh "$PROGRAMS/passer" "$WORK/pid" \
	2>"$WORK/err"
tap_verdict "a busy grandchild: the run ends well" $? "$WORK/err"
tap_check "a busy grandchild: the artifact is complete" "$MEMTRACK" verify "$WORK/run"
tap_check "a busy grandchild: it lives on" kill -0 "$(cat "$WORK/pid")"
kill "$(cat "$WORK/pid")"
tap_done
