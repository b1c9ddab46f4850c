# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 6, back-pressure: a program that is faster than the encoder is held back smoothly, for as long as it
# takes, and loses nothing. An output that takes nothing costs it --max-wait once; what is lost then
# is counted exactly, and nothing is lost any more when the output moves again.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python

# of FIELD: what the program said of its stalls.
of()
{
	"$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$WORK/out" "$1"
}

TRACK_OPTIONS="--codec=zstd --level=9 --workers=1"
tracked "slow encoder" "$PROGRAMS/stalls" "$(long 1.5 10)"
tap_check "slow encoder: the program was held back ($(of stalls) times)" test "$(of stalls)" -gt 100
# A batch at a time these were 30 ms and more.
tap_check "slow encoder: a few ms at a time (half of the time by $(of half_of_time_us) us or less)" \
	test "$(of half_of_time_us)" -lt 15000
tap_equal "slow encoder: nothing was lost" 0 "$(lost run)"

# A batch takes longer than --max-wait.
TRACK_OPTIONS="--codec=zstd --level=12 --workers=1 --max-wait=100ms --buffer-size=4M"
tracked "very slow encoder" "$PROGRAMS/passer" 2 "$(long 150000 500000)" churn
tap_equal "very slow encoder: nothing was lost" 0 "$(lost run)"
TRACK_OPTIONS="--codec=zstd --level=12 --workers=1 --max-wait=100ms --buffer-size=64K --max-buffers=1M"
tracked "very slow encoder, small buffers" "$PROGRAMS/passer" 4 "$(long 40000 250000)" churn
tap_equal "very slow encoder, small buffers: nothing was lost" 0 "$(lost run)"

# standstill PAIRS: so many while nobody reads the terminal that the artifact goes to, and so many
# after that.
standstill()
{
	bounded 100 "$PYTHON" "$E2E/standstill.py" "$WORK" "$LAUNCHER" -q ${TRACK_OPTIONS:-} -o "$WORK/run" -- \
		"$PROGRAMS/twice" "$1" "$WORK/half" "$WORK/go" </dev/null >"$WORK/out" 2>"$WORK/err"
}

# heap_events: as stat counts them.
heap_events()
{
	"$MEMTRACK" stat --json "$WORK/run" | "$PYTHON" -c 'import json, sys
kinds = json.load(sys.stdin)["by_kind"]
print(sum(kinds[k] for k in ("Malloc", "Calloc", "AlignedAlloc", "Realloc", "Free")))'
}

TRACK_OPTIONS="--workers=1 --buffer-size=1M --max-buffers=2M --max-wait=1"
standstill 0
tap_verdict "output stands still: a program that does little ends well" $? "$WORK/err"
base=$(heap_events)
pairs=300000
standstill "$pairs"
tap_verdict "output stands still: the program goes on by itself" $? "$WORK/err"
first=$(cat "$WORK/half_ms")
tap_check "output stands still: it waited once ($first ms)" test "$first" -ge 900 -a "$first" -lt 6000
lost=$(lost run)
tap_check "output stands still: some was lost" test "$lost" -gt 0
tap_equal "output moves again: nothing is lost any more" "$pairs" "$(count_size run 2222)"
tap_equal "output stands still: recorded and lost are all" "$((base + 4 * pairs))" "$(($(heap_events) + lost))"
tap_done
