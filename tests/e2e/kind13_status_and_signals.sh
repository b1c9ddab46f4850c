# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 13: exit status and signals pass through, and the artifact is complete each time.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
ulimit -c 0

ends()
{
	WANT_STATUS=$1
	shift
	tracked "$@"
}

ends 0 "exit 0" sh -c 'exit 0'
ends 3 "exit 3" sh -c 'exit 3'
ends 137 "killed by SIGKILL" sh -c 'kill -9 $$'
ends 143 "killed by SIGTERM" sh -c 'kill -15 $$'
ends 134 "killed by SIGABRT" sh -c 'kill -6 $$'
WANT_STATUS=0
# A shell gives 128 + n either way. Who waits for us sees which it was.
for end in "-15 kill -15 \$\$" "143 exit 143"; do
	rm -f "$WORK/run"
	tap_equal "${end#* }: who waits sees it so" "${end%% *}" "$("$PYTHON" -c 'import subprocess, sys
print(subprocess.call(sys.argv[1:]))' "$LAUNCHER" -q -o "$WORK/run" -- sh -c "${end#* }" 2>"$WORK/err")"
done

# A timer that the caller set before it became us is the command's: alarm 5; exec memtrack-preload ...
cat >"$WORK/timed.py" <<'END'
# timed.py TIMER SECONDS COMMAND...: without a command it says what is set.
import os, signal, sys
if len(sys.argv) == 1:
    print([signal.getitimer(t)[0] > 1 for t in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)])
    sys.exit()
signal.setitimer(getattr(signal, sys.argv[1]), float(sys.argv[2]))
os.execvp(sys.argv[3], sys.argv[3:])
END
rm -f "$WORK/run"
start=$(date +%s)
bounded 20 "$PYTHON" "$WORK/timed.py" ITIMER_REAL 2 "$LAUNCHER" -q -o "$WORK/run" -- sleep 10 2>"$WORK/err"
tap_equal "an alarm of the caller's ends the command" 142 $?
tap_check "an alarm of the caller's ends the command: in time" test $(($(date +%s) - start)) -lt 5
verified "an alarm of the caller's ends the command" run
for timer in ITIMER_REAL ITIMER_VIRTUAL ITIMER_PROF; do
	rm -f "$WORK/run"
	tap_equal "$timer of the caller's is the command's" \
		"$("$PYTHON" "$WORK/timed.py" $timer 100 "$PYTHON" "$WORK/timed.py")" \
		"$("$PYTHON" "$WORK/timed.py" $timer 100 "$LAUNCHER" -q -o "$WORK/run" -- "$PYTHON" "$WORK/timed.py")"
done

# A lock of fcntl's that the caller took is held while the command runs, and no longer.
cat >"$WORK/lock.py" <<'END'
# lock.py FILE [COMMAND...]: becomes the command with the lock; alone it says whether it can have it.
import fcntl, os, sys
file = open(sys.argv[1], "w")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("held")
    sys.exit()
print("free", flush=True)
if len(sys.argv) > 2:
    os.set_inheritable(file.fileno(), True)
    os.execvp(sys.argv[2], sys.argv[2:])
END
rm -f "$WORK/run"
said=$(bounded 20 "$PYTHON" "$WORK/lock.py" "$WORK/lock" "$LAUNCHER" -q -o "$WORK/run" -- \
	"$PYTHON" "$WORK/lock.py" "$WORK/lock" 4>"$WORK/other" 2>"$WORK/err")
tap_equal "a lock of the caller's is held while the command runs, and no longer" "free held free" \
	"$(echo $said $("$PYTHON" "$WORK/lock.py" "$WORK/lock"))"

track run /no/such/command 2>"$WORK/err"
tap_equal "a command that is not there" 127 $?
tap_check "a command that is not there: stderr names it" grep -q /no/such/command "$WORK/err"
: >"$WORK/plain"
track run "$WORK/plain" 2>"$WORK/err"
tap_equal "a command that cannot be run" 126 $?
"$LAUNCHER" -q -o /no/such/folder/file -- touch "$WORK/started" 2>"$WORK/err"
tap_equal "an output that cannot be written is our own failure" 125 $?
tap_check "an output that cannot be written: the command did not start" test ! -e "$WORK/started"
"$LAUNCHER" --no-such-option true 2>"$WORK/err"
tap_equal "an option that is not known is our own failure" 125 $?

echo "words from stdin" | track run cat >"$WORK/out" 2>"$WORK/err"
tap_equal "stdin passes through" "words from stdin" "$(cat "$WORK/out")"

ended()
{
	case $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) in
	"" | Z) return 0 ;;
	esac
	return 1
}

# passes SIGNAL STATUS TEXT SCRIPT: sends the signal to the launcher alone, when the script is ready.
passes()
{
	rm -f "$WORK/ready" "$WORK/run"
	# Whoever runs the tests may ignore some signals (nohup); the program would inherit that.
	env --default-signal="$1" "$LAUNCHER" -q -o "$WORK/run" -- "$TRACKED_SH" -c "$4" sh "$WORK/ready" \
		>"$WORK/out" 2>"$WORK/err" &
	launcher=$!
	wait_for 10 test -s "$WORK/ready" || tap_fail "$3: it starts"
	kill -s "$1" "$launcher"
	wait_for 10 ended "$launcher" || kill -KILL "$launcher" "$(cat "$WORK/ready")"
	wait "$launcher"
	tap_equal "$3: status" "$2" $?
	verified "$3" run
}

passes TERM 5 "SIGTERM to us reaches a program that handles it" \
	'trap "exit 5" TERM; echo $$ >"$1"; while :; do sleep 0.05; done'
passes TERM 143 "SIGTERM to us ends a program that does not" 'echo $$ >"$1"; exec sleep 30'
passes TERM 6 "SIGTERM that the program ignores for a while" \
	'trap "" TERM; echo $$ >"$1"; sleep 0.5; exit 6'
passes HUP 129 "SIGHUP to us ends the program" 'echo $$ >"$1"; exec sleep 30'
passes USR1 9 "SIGUSR1 passes through" 'trap "exit 9" USR1; echo $$ >"$1"; while :; do sleep 0.05; done'
tap_done
