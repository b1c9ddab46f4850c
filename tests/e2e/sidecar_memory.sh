# SPDX-License-Identifier: MIT OR Apache-2.0
# The sidecar's own memory stays below 64 MiB, whatever the program, the output and the options for
# buffers do. (What is beyond it by design, the liveness bits of large heaps, is 1/64 of the
# addresses touched: these programs touch few.)
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python

MOST_KIB=65536

# held TEXT COMMAND...: tracks the command; ok when it ends well and the memory was within limits.
# MEMORY_OPTIONS are for memory.py.
held()
{
	held_text=$1
	shift
	rm -f "$WORK/run" "$WORK/peak"
	if ! bounded "$(long 60 300)" "$PYTHON" "$E2E/memory.py" ${MEMORY_OPTIONS:-} "$WORK/peak" "$LAUNCHER" -q \
		${TRACK_OPTIONS:-} -o "$WORK/run" -- "$@" </dev/null >"$WORK/out" 2>"$WORK/err"; then
		tap_fail "$held_text: ends well" "$WORK/err" "$WORK/out"
		return
	fi
	peak=$(cat "$WORK/peak")
	tap_check "$held_text: $peak KiB of private memory at most" test "$peak" -gt 0 -a "$peak" -lt "$MOST_KIB"
}

pairs=$(long 2000000 20000000)
held "1 thread" "$PROGRAMS/passer" 1 "$pairs" churn
held "8 threads" "$PROGRAMS/passer" 8 "$((pairs / 8))" churn
held "threads that pass blocks on" "$PROGRAMS/passer" 4 "$((pairs / 16))"
TRACK_OPTIONS="--workers=3 --max-buffers=4G"
held "large buffers, 3 workers" "$PROGRAMS/passer" 8 "$((pairs / 8))" churn
TRACK_OPTIONS=
held "many processes" sh -c 'i=0
	while test "$i" -lt "$2"; do
		"$1" 2 1000 churn & "$1" 2 1000 churn & "$1" 2 1000 churn & "$1" 2 1000 churn &
		i=$((i + 4))
	done
	wait' sh "$PROGRAMS/passer" "$(long 100 2000)"
TRACK_OPTIONS="--workers=1 --codec=zstd --level=9"
held "slow encoder" "$PROGRAMS/passer" 2 "$((pairs / 8))" churn

# Nobody reads the terminal that the artifact goes to: all that can wait waits.
TRACK_OPTIONS=
MEMORY_OPTIONS=--stalled-output
held "stalled output" "$PROGRAMS/passer" 2 "$((pairs / 8))" churn
tap_done
