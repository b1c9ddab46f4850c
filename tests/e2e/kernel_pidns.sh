# SPDX-License-Identifier: MIT OR Apache-2.0
# A program enters a PID namespace of its own and forks there without an exec: the child is 1 for
# itself and something else for its parent. It is recorded with the number that we have for it, from
# whatever source the events of the kernel come. Who is gone before anybody could ask for its number
# is counted, and no process is made up.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
bounded 20 "$PROGRAMS/nester" one 1 || tap_skip_all "no PID namespaces"
blocks=$(long 500 5000)

# is_true_tree NAME: each Fork is of a process that nobody had, by one that was there; each has its end.
is_true_tree()
{
	dump "$1" | "$PYTHON" -c '
import json, sys
alive = set()
for line in sys.stdin:
    event = json.loads(line)
    pid, kind = event.get("pid"), event.get("type")
    if kind == "Exec" and not alive:
        alive.add(pid)
    elif kind == "Fork":
        assert pid > 1 and pid not in alive, line
        if sys.argv[1] == "told":
            assert event["parent_pid"] in alive, line
        alive.add(pid)
    elif kind == "Exit":
        alive.remove(pid)
    elif kind == "Malloc":
        assert pid in alive, line
assert not alive, alive
' "$2"
}

# nested TEXT TOLD ACTION SIZES: all of them are recorded, with the options of $options.
nested()
{
	text="$1, $3"
	rm -f "$WORK/run"
	# shellcheck disable=SC2086
	bounded 60 "$LAUNCHER" $options -o "$WORK/run" -- $prefix "$PROGRAMS/nester" "$3" "$blocks" "$pause" \
		>"$WORK/out" 2>"$WORK/err"
	tap_verdict "$text: ends well" $? "$WORK/err"
	verified "$text" run
	for size in $4; do
		tap_equal "$text: allocations of ${size%:*}" $((${size#*:} * blocks)) "$(count_size run "${size%:*}")"
	done
	tap_equal "$text: nothing is lost" 0 "$(lost run)"
	tap_check "$text: processes have their own numbers, their forks and their ends" is_true_tree run "$2"
	tap_equal "$text: nothing is said" 0 "$(grep -c 'overwrote\|want of memory\|still running' "$WORK/err")"
}

all()
{
	nested "$1" "$2" one "7001:1"
	nested "$1" "$2" children "7001:1 7002:1 7003:1 7004:1"
	nested "$1" "$2" twice "7011:1 7012:1 7002:1 7003:1 7004:1"
	nested "$1" "$2" threads "7021:1 7022:1 7023:1 7024:1"
	nested "$1" "$2" exec "7031:1 7032:1"
	nested "$1" "$2" siblings "7041:1 7042:1 7043:1 7044:20"
	nested "$1" "$2" raw "7051:1"
}

# All that is there, and perf; then nobody but the programs and /proc, which has to be asked in time.
pause=0
prefix=
for options in --bpf=auto --bpf=basic; do
	bounded 20 "$LAUNCHER" $options -o "$WORK/probe" -- "$PROGRAMS/blocks" 1 1 2>"$WORK/err"
	if grep -q 'not recorded without.*no kernel events' "$WORK/err"; then
		tap_skip "$options" "no kernel events here"
		continue
	fi
	rm -f "$WORK/probe"
	all "$options" told
	test "$(id -u)" -eq 0 || continue
	prefix="unshare -pf"
	all "$options, in a container" told
	prefix=
done
options=--bpf=off
pause=100
all "$options" untold
if test "$(id -u)" -eq 0; then
	prefix="unshare -pf"
	all "$options, in a container" untold
	prefix=
else
	tap_skip "in a container" "needs root"
fi

# accounted ACTION SIZES: what is not recorded is counted, for no other reason than that it came late.
pause=0
accounted()
{
	rm -f "$WORK/run"
	bounded 60 "$LAUNCHER" --bpf=off -o "$WORK/run" -- "$PROGRAMS/nester" "$1" "$blocks" \
		>"$WORK/out" 2>"$WORK/err"
	tap_verdict "gone at once, $1: ends well" $? "$WORK/err"
	found=0
	for size in $2; do
		found=$((found + $(count_size run "$size")))
	done
	wanted=$(($(echo "$2" | wc -w) * blocks))
	tap_check "gone at once, $1: recorded or counted ($found, $(lost run))" \
		test "$((found + $(lost run) / 2))" -ge "$wanted"
	tap_equal "gone at once, $1: no false reason" 0 \
		"$(grep -c 'overwrote\|want of memory\|still running' "$WORK/err")"
	tap_check "gone at once, $1: nobody is made up" is_true_tree run untold
}
accounted children "7001 7002 7003 7004"
accounted twice "7011 7012 7002 7003 7004"
accounted raw "7051"
tap_done
