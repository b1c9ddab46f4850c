# SPDX-License-Identifier: MIT OR Apache-2.0
# The means of the proof themselves: the counter counts what a program does, and the comparison
# passes what agrees and fails on one event too few, too many, or in the wrong place. No memtrack.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_python

# alone COMMAND...: with the counter and nothing else.
alone()
{
	rm -f "$WORK/counts"
	truncate -s "$COUNTER_BYTES" "$WORK/counts" || exit 1
	env MT_COUNTER="$WORK/counts" LD_PRELOAD="$COUNTER" "$@" >"$WORK/out" 2>&1
}

# sums: of all slots, one a line: calls of each kind, bytes of each kind, slots.
sums()
{
	PYTHONPATH=$E2E "$PYTHON" -B - "$WORK/counts" <<-'END'
		import sys
		import artifact
		slots = artifact.slots(sys.argv[1])
		for what in ("calls", "bytes"):
		    print(*(sum(slot[what][kind] for slot in slots) for kind in artifact.KINDS))
		print(len(slots), max((slot["alive"] for slot in slots), default=0))
	END
}

alone "$PROGRAMS/blocks" 0 12345
sums >"$WORK/without"
for end in return _exit quick_exit abort kill; do
	alone "$PROGRAMS/blocks" 1000 12345 $end
	sums >"$WORK/with"
	tap_equal "counter: 1000 blocks are 1000 calls and their bytes after the end by $end" "1000 12345000" \
		"$(paste -d' ' "$WORK/with" "$WORK/without" | awk 'NR <= 2 { printf "%s%d", sep, $1 - $6; sep = " " }')"
done

alone "$PROGRAMS/forker" 5
tap_equal "counter: ten children and their parent are eleven images" "11" "$(sums | awk 'NR == 3 { print $1 }')"
tap_equal "counter: children by fork and clone take their blocks" "$((2 * (1 + 2 + 3 + 4 + 5)))" \
	"$(PYTHONPATH=$E2E "$PYTHON" -B -c 'import sys, artifact
print(sum(slot["calls"]["malloc"] for slot in artifact.slots(sys.argv[1]) if slot["origin"] == 2))' "$WORK/counts")"

alone "$PROGRAMS/vforker" 20
tap_equal "counter: vfork children are no images; system and popen are" "1" \
	"$(PYTHONPATH=$E2E "$PYTHON" -B -c 'import sys, artifact
print(sum(slot["calls"]["malloc"] >= 220 for slot in artifact.slots(sys.argv[1])))' "$WORK/counts")"

alone "$PROGRAMS/passer" 4 2000
tap_equal "counter: threads that were joined are not alive" "1" "$(sums | awk 'NR == 3 { print $2 }')"
tap_equal "counter: what is taken is given back" "balanced" "$(sums | awk 'NR == 1 {
	left = $1 + $2 + $3 - $5; print (left >= 0 && left < 10 ? "balanced" : $0) }')"

alone "$PROGRAMS/entries"
tap_equal "counter: each entry point counts" "fine" "$(sums | awk 'NR == 1 {
	print ($2 >= 1 && $3 == 15 && $4 >= 3000 + 7 ? "fine" : $0) }')" # the C library calls some itself

alone "$PROGRAMS/newdelete"
tap_check "counter: operators new and delete run through it" test -s "$WORK/counts"
tap_equal "counter: aligned forms of new count as such" "700" "$(sums | awk 'NR == 1 { print $3 }')"

compare()
{
	"$PYTHON" -B "$E2E/compare.py" "$WORK/changed" "$WORK/counts" >"$WORK/said" 2>"$WORK/trace"
	status=$?
	test -s "$WORK/trace" && status=crashed
	echo $status
}

alone sh -c '"$1" 300 11; "$1" 50 22; exit 0' sh "$PROGRAMS/blocks"
"$PYTHON" -B "$E2E/made.py" from-counter "$WORK/counts" "$WORK/made"
for fault in none malloc-missing free-missing malloc-twice free-twice one-byte-more other-process \
	time-back free-first; do
	rm -f "$WORK/changed"
	"$PYTHON" -B "$E2E/made.py" doctor $fault "$WORK/made" "$WORK/changed" || exit 1
	wanted=1
	test $fault != none || wanted=0
	tap_equal "comparison: $fault gives $wanted" $wanted "$(compare)"
done

cp "$WORK/made" "$WORK/changed"
printf 'x' >>"$WORK/changed"
tap_equal "comparison: rubbish behind the last frame is damage" 3 "$(compare)"
head -c 200 "$WORK/made" >"$WORK/changed"
tap_equal "comparison: a cut file is damage" 3 "$(compare)"
tap_done
