# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 51: runs at the same time, and runs after a killed one, do not disturb each other; nothing is
# left behind.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cd "$WORK" || exit 1
TMPDIR=$WORK/tmp
mkdir "$TMPDIR" "$WORK/many"
export TMPDIR
for run in 1 2 3 4; do
	"$LAUNCHER" -q -o "$WORK/many" -- "$PROGRAMS/blocks" 100 "$((51000 + run))" 2>>"$WORK/err" &
done
wait
tap_equal "four runs at once: four files" 4 "$(ls "$WORK/many" | grep -c '^[0-9]*\.MemtrackArtifact\.msgpack$')"
for file in "$WORK/many"/*; do
	"$MEMTRACK" dump "$file" | grep -o '"size":5100[1-4][,}]' | sort | uniq -c
done | awk '{ print $1 }' | sort | uniq -c | awk '{ print $1, $2 }' >"$WORK/counts"
tap_equal "four runs at once: each holds its own" "4 100" "$(cat "$WORK/counts")"
tap_equal "nothing is left in the folder for temporary files" "" "$(ls "$TMPDIR")"
tap_equal "nothing is left in /dev/shm" "" "$(ls /dev/shm | grep -i memtrack)"
track run true
"$LAUNCHER" -q -o "$WORK/run" -- touch "$WORK/started" 2>"$WORK/err"
tap_equal "a file that is there is not overwritten" 125 $?
tap_check "a file that is there: the command did not start" test ! -e "$WORK/started"
"$LAUNCHER" -q --force -o "$WORK/run" -- "$PROGRAMS/blocks" 10 51999 2>"$WORK/err"
tap_equal "with --force it is" "0 10" "$? $(count_size run 51999)"

# A pipe cannot hold an artifact, and must not be waited for.
mkfifo "$WORK/pipe"
bounded 10 "$LAUNCHER" -o "$WORK/pipe" -- "$PROGRAMS/blocks" 10 51999 2>"$WORK/err"
tap_equal "a pipe is refused before the command starts" "125 1" "$? $(grep -c 'is a pipe' "$WORK/err")"
bounded 10 "$LAUNCHER" -o - -- "$PROGRAMS/blocks" 10 51999 2>"$WORK/err" | wc -c >"$WORK/bytes"
tap_equal "standard output is no place for it" "0 1" "$(cat "$WORK/bytes") $(grep -c 'needs a file' "$WORK/err")"
# Killed with all that belongs to it, and again: nothing of the first is in the way of the second.
for round in 1 2 3; do
	rm -f "$WORK/killed" "$WORK/ready"
	setsid "$LAUNCHER" -q -o "$WORK/killed" -- sh -c '"$1" 4 100000000 churn & : >"$2"; wait' sh \
		"$PROGRAMS/passer" "$WORK/ready" 2>/dev/null &
	group=$!
	wait_for 10 test -e "$WORK/ready"
	kill -KILL "-$group"
	wait $group 2>/dev/null
	rm -f "$WORK/run"
	"$LAUNCHER" -q -o "$WORK/run" -- "$PROGRAMS/blocks" 100 51100 2>"$WORK/err"
	tap_equal "after a run where all was killed: the next is as ever" "0 100" "$? $(count_size run 51100)"
	verified "after a run where all was killed" run
done
tap_equal "after runs where all was killed: nothing is left in /dev/shm" "" "$(ls /dev/shm | grep -i memtrack)"

# The folder of a session: there as long as it goes on, however old, and not longer. Runs take away
# what killed ones have left.
runtime=$(mktemp -d /tmp/mt.XXXXXX) && trap 'rm -rf "$WORK" "$runtime"' EXIT
XDG_RUNTIME_DIR=$runtime
export XDG_RUNTIME_DIR
rm -f "$WORK/run" "$WORK/killed"
"$LAUNCHER" -q -o "$WORK/run" -- ls "$runtime" >"$WORK/out" 2>"$WORK/err"
tap_equal "a session's folder is there, and then gone" "1 0" "$(wc -l <"$WORK/out") $(ls "$runtime" | wc -l)"
"$LAUNCHER" -q -o "$WORK/killed" -- sh -c 'kill -KILL $PPID' 2>/dev/null
tap_equal "a killed session leaves its folder" 1 "$(ls "$runtime" | wc -l)"
touch -d '2 minutes ago' "$runtime"/*
"$LAUNCHER" -q -o "$WORK/outer" -- sh -c 'touch -d "2 minutes ago" "${MEMTRACK_SESSION##*:}"
	"$1" -q -o "$2" -- true; "$1" -q --force -o "$3" -- true; echo $?; ls "$4" | wc -l
	test -d "${MEMTRACK_SESSION##*:}" && echo there' sh "$LAUNCHER" "$WORK/inner" "$WORK/outer" "$runtime" \
	>"$WORK/out" 2>"$WORK/err"
tap_equal "a file that is being written is not replaced, even with --force" "125 1" \
	"$(head -n 1 "$WORK/out") $(grep -c 'being written by another run' "$WORK/err")"
tap_equal "a leftover is taken away, a session that goes on is not" "1 there 0" \
	"$(tail -n 2 "$WORK/out" | paste -sd' ') $(ls "$runtime" | wc -l)"
unset XDG_RUNTIME_DIR
rm -f "$WORK/outer" "$WORK/inner"

# Our library in the environment already: neither the sidecar nor the reader tracks itself.
library=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
mkdir "$WORK/none"
rm -f "$WORK/run"
(cd "$WORK/none" && LD_PRELOAD=$library MEMTRACK_OUTPUT=$WORK/none/self "$LAUNCHER" -q -o "$WORK/run" -- \
	"$PROGRAMS/blocks" 100 51101) 2>"$WORK/err"
tap_equal "our library in LD_PRELOAD already: recorded once" "0 100" "$? $(count_size run 51101)"
"$MEMTRACK" stat --wait "$WORK/none/self" >"$WORK/stat"
tap_equal "our library in LD_PRELOAD already: nothing of it is in the shell's own run" 0 \
	"$("$MEMTRACK" dump "$WORK/none/self" | grep -c '"size":51101[,}]')"
tap_equal "our library in LD_PRELOAD already: the sidecar is tracked by nobody" 1 \
	"$(grep -c 'untracked: .*memtrack-sidecar' "$WORK/stat")"
rm -f "$WORK/outer" "$WORK/inner"
"$LAUNCHER" -q -o "$WORK/outer" -- sh -c 'MEMTRACK_FOLLOW=x "$1" -q -o "$2" -- sh -c "\"\$1\" 100 51102; echo \$MEMTRACK_FOLLOW" sh "$3"' \
	sh "$LAUNCHER" "$WORK/inner" "$PROGRAMS/blocks" >"$WORK/out" 2>"$WORK/err"
tap_equal "a run inside a run: the inner one has its command" "0 100 0" \
	"$? $(count_size inner 51102) $(count_size outer 51102)"
tap_equal "a run inside a run: what the user set stays" x "$(cat "$WORK/out")"
verified "our library in LD_PRELOAD already" run
tap_done
