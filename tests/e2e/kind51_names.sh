# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 51: runs at the same time, and runs after a killed one, do not disturb each other; nothing is
# left behind.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cd "$WORK" || exit 1
TMPDIR=$WORK/tmp
mkdir "$TMPDIR" "$WORK/many"
export TMPDIR
ls /dev/shm >"$WORK/shm.before"
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
tap_check "nothing is left in /dev/shm" sh -c 'ls /dev/shm | cmp "$1" -' sh "$WORK/shm.before"
track run true
"$LAUNCHER" -q -o "$WORK/run" -- touch "$WORK/started" 2>"$WORK/err"
tap_equal "a file that is there is not overwritten" 125 $?
tap_check "a file that is there: the command did not start" test ! -e "$WORK/started"
"$LAUNCHER" -q --force -o "$WORK/run" -- "$PROGRAMS/blocks" 10 51999 2>"$WORK/err"
tap_equal "with --force it is" "0 10" "$? $(count_size run 51999)"

# A pipe cannot hold an artifact, and must not be waited for.
mkfifo "$WORK/pipe"
timeout 20 "$LAUNCHER" -o "$WORK/pipe" -- "$PROGRAMS/blocks" 10 51999 2>"$WORK/err"
tap_equal "a pipe is refused before the command starts" "125 1" "$? $(grep -c 'is a pipe' "$WORK/err")"
timeout 20 "$LAUNCHER" -o - -- "$PROGRAMS/blocks" 10 51999 2>"$WORK/err" | wc -c >"$WORK/bytes"
tap_equal "standard output is no place for it" "0 1" "$(cat "$WORK/bytes") $(grep -c 'needs a file' "$WORK/err")"
tap_done
