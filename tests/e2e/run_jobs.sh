# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 13, on a terminal and off it: signals arrive once, and stops stop both, however they come.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
test -x "$PYTHON" || tap_skip_all "python3 is not installed"

state()
{
	sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null
}

both_are()
{
	test "$(state "$launcher")" = "$1" && test "$(state "$command")" = "$1"
}

both_run()
{
	test "$(state "$launcher")" != T && test "$(state "$command")" != T
}

# Tells its number and each signal that it gets; SIGTERM ends it.
cat >"$WORK/tell.py" <<'END'
import os, signal, sys, time
def tell(number, frame):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(7)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCONT, signal.SIGHUP):
    signal.signal(number, tell)
print(os.getpid(), flush=True)
while True:
    time.sleep(10)
END

start()
{
	rm -f "$WORK/run" "$WORK/told"
	"$LAUNCHER" -q -o "$WORK/run" -- "$PYTHON" "$WORK/tell.py" >"$WORK/told" 2>"$WORK/err" &
	launcher=$!
	wait_for 20 test -s "$WORK/told"
	command=$(head -n 1 "$WORK/told")
}

count_told()
{
	grep -c "^$1$" "$WORK/told"
}

told()
{
	test "$(count_told "$1")" -ge 1
}

start
kill -USR1 "$launcher"
tap_check "a signal to the launcher reaches the command" wait_for 10 told SIGUSR1
kill -STOP "$command"
tap_check "the command is stopped: the launcher stops" wait_for 10 both_are T
kill -CONT "$launcher"
tap_check "the launcher is continued: both go on" wait_for 10 both_run
tap_check "the launcher is continued: the command hears of it" wait_for 10 told SIGCONT
kill -STOP "$command"
wait_for 10 both_are T
kill -CONT "$command"
tap_check "the command is continued: both go on" wait_for 10 both_run
kill -TERM "$launcher"
wait "$launcher"
tap_equal "SIGTERM to the launcher: the status is the command's" 7 $?
tap_equal "each signal came once" "1 1" "$(count_told SIGUSR1) $(count_told SIGTERM)"
verified "stops and signals" run

# Under a terminal: what it sends to the whole group comes once.
cat >"$WORK/terminal.py" <<'END'
import os, pty, select, signal, sys, time
def read_until(fd, word, data=b""):
    end = time.time() + 20
    while word not in data and time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                data += os.read(fd, 4096)
            except OSError:
                break
    return data
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
data = read_until(fd, b"\n")
# The launcher gets to it when the command has had it: two at once would count as one.
os.kill(pid, signal.SIGSTOP)
os.write(fd, b"\x03")
data = read_until(fd, b"SIGINT", data)
os.kill(pid, signal.SIGCONT)
data = read_until(fd, b"SIGCONT", data)
# A second one, passed on by mistake, would arrive before this.
os.kill(pid, 15)
data = read_until(fd, b"SIGTERM", data)
status = os.waitpid(pid, 0)[1]
print(data.count(b"SIGINT"), data.count(b"SIGTERM"), os.waitstatus_to_exitcode(status))
END
rm -f "$WORK/run"
tap_equal "Ctrl-C comes once, SIGTERM to the launcher comes once" "1 1 7" \
	"$(bounded 60 "$PYTHON" "$WORK/terminal.py" "$LAUNCHER" -q -o "$WORK/run" -- "$PYTHON" "$WORK/tell.py" 2>"$WORK/err")"
verified "a terminal's signals" run

# What a process of the tree sends to its whole group is no reason to send it again. The launcher gets
# to it when the command has had it, and it is given time to.
rm -f "$WORK/run" "$WORK/told"
bounded 60 setsid -w "$LAUNCHER" -q -o "$WORK/run" -- sh -c 'trap "echo USR1" USR1
	kill -STOP $PPID
	kill -USR1 0
	kill -CONT $PPID
	while grep -q "^ShdPnd:.*[2367abef]..$" /proc/$PPID/status; do sleep 0.01; done
	i=0
	while test $i -lt 20; do sleep 0.01; i=$((i + 1)); done' >"$WORK/told" 2>"$WORK/err"
tap_equal "a signal from the tree to its group comes once" "0 1" "$? $(count_told USR1)"
tap_done
