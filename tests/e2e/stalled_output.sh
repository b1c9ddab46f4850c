# SPDX-License-Identifier: MIT OR Apache-2.0
# While nobody reads the output, programs start and fork by the thousand and one says hello again and
# again: the sidecar takes in so many and lets the others wait, --max-wait for all of them together;
# then they run untracked, and are listed. Its memory stays within what docs/memory.md says. When the
# output is read again, what was recorded arrives, what was not is counted, and programs are tracked
# as ever.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python

forks=$(long 5 200)
starts=$(long 20 2000)
pairs=450000
MOST_KIB=65536

# of NAME: what the command wrote there.
of()
{
	cat "$WORK/$1"
}

for policy in $(long block "block drop"); do
	rm -f "$WORK"/*
	bounded "$(long 60 600)" "$PYTHON" "$E2E/stalled.py" "$WORK" "$LAUNCHER" --workers=1 --max-wait=1 \
		--on-full=$policy -o "$WORK/run" -- sh -c '
		# Enough that all batches are under way; the rest waits or is lost.
		"$1/blocks" '$pairs' 555 &
		filler=$!
		sleep 1
		# Until the output stands still the merge takes them all in.
		i=0
		while test $i -lt 10 && "$1/hostile_client" repeat >"$2/welcomes" && test "$(cat "$2/welcomes")" -gt 0; do
			i=$((i + 1))
		done
		start=$(date +%s%N)
		"$1/blocks" 100 3333
		"$1/blocks" 100 3333
		echo $((($(date +%s%N) - start) / 1000000)) >"$2/waited_ms"
		i=0
		while test $i -lt $3; do
			"$1/forker" 100
			i=$((i + 1))
		done
		i=0
		while test $i -lt $4; do
			/bin/true
			i=$((i + 1))
		done
		: >"$2/read"
		wait $filler
		# The merge comes back when what has piled up is written.
		sleep 1
		"$1/blocks" 100 4444
		exit 7' sh "$PROGRAMS" "$WORK" "$forks" "$starts" 2>"$WORK/err" </dev/null
	tap_equal "$policy: ends as the command does" 7 $?
	tap_equal "$policy: images that are taken in in the end" 0 "$(of welcomes)"
	tap_check "$policy: programs that start then do not wait again ($(of waited_ms) ms)" test "$(of waited_ms)" -lt 3000
	tap_check "$policy: the sidecar does not grow ($(of peak) KiB)" test "$(of peak)" -lt $MOST_KIB
	tap_check "$policy: nor do its descriptors ($(of descriptors))" test "$(of descriptors)" -lt 300
	"$MEMTRACK" verify "$WORK/run" >"$WORK/verified" 2>&1
	tap_check "$policy: nothing contradicts itself" grep -q '^contradictions: none' "$WORK/verified"
	"$MEMTRACK" stat --json "$WORK/run" >"$WORK/stat"
	tap_equal "$policy: programs that found no room are named" 1 \
		"$(grep -c 'sidecar-stood-still' "$WORK/stat" | sed 's/^[1-9].*/1/')"
	recorded=$(count_size run 555)
	lost=$(lost run)
	tap_check "$policy: what was recorded ($recorded) and lost ($lost) is all" \
		test "$((recorded + lost))" -ge $pairs
	tap_equal "$policy: programs are tracked again" 100 "$(count_size run 4444)"
done
tap_done
