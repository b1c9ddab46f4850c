# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 6: an allocation storm. Nothing is lost while the sidecar lives; a sidecar that is stopped
# costs a bounded wait, and what is lost then is counted exactly.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

# frees NAME: how many Free events it has; too many to print them all.
frees()
{
	"$MEMTRACK" stat "$WORK/$1" | sed -n 's/^  Free  *//p' | tr -d ,
}

pairs=$(long 60000 5000000)
tracked "8 threads on one processor" taskset -c 0 "$PROGRAMS/passer" 8 "$pairs" churn
tap_check "8 threads on one processor: every pair is there" test "$(frees run)" -ge "$((8 * pairs))"
tap_equal "8 threads on one processor: nothing was lost" 0 "$(lost run)"

heap_events()
{
	dump "$1" | grep -cE '"type":"(Malloc|Calloc|AlignedAlloc|Realloc|Free)"'
}

TRACK_OPTIONS="--buffer-size 64K --max-buffers 1M"
seconds=$(long 1 3)
tracked "sidecar stopped for $seconds s" "$PROGRAMS/passer" 4 20000 pause "$seconds"
tap_equal "sidecar stopped for $seconds s: nothing was lost" 0 "$(lost run)"
tap_check "sidecar stopped for $seconds s: every pair is there" test "$(frees run)" -ge 80000

# Buffers are as small as --max-buffers wants them, or the threads alone would hold all.
TRACK_OPTIONS="--max-buffers 128K"
tracked "16 threads in 128 KiB" "$PROGRAMS/passer" 16 10000 churn
tap_equal "16 threads in 128 KiB: nothing was lost" 0 "$(lost run)"

TRACK_OPTIONS=
track run "$PROGRAMS/passer" 1 0 churn
base=$(heap_events run)

TRACK_OPTIONS="--buffer-size 64K --max-buffers 1M --max-wait 300ms"
track run "$PROGRAMS/passer" 1 100000 stop </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "sidecar stopped for good: the program ends by itself" $? "$WORK/err"
lost=$(lost run)
tap_check "sidecar stopped for good: some was lost" test "$lost" -gt 0
tap_equal "sidecar stopped for good: recorded and lost are all" "$((base + 200000))" "$(($(heap_events run) + lost))"
"$MEMTRACK" verify "$WORK/run" >"$WORK/said" 2>&1
tap_equal "sidecar stopped for good: verify says so" 1 $?

TRACK_OPTIONS="--buffer-size 64K --max-buffers 64K --on-full=drop"
track run "$PROGRAMS/passer" 1 100000 stop </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "policy drop: the program ends by itself" $? "$WORK/err"
lost=$(lost run)
tap_check "policy drop: some was lost" test "$lost" -gt 0
tap_equal "policy drop: recorded and lost are all" "$((base + 200000))" "$(($(heap_events run) + lost))"
"$MEMTRACK" verify "$WORK/run" >"$WORK/said" 2>&1
tap_equal "policy drop: verify says incomplete, and not that it contradicts" "1 contradictions: none" \
	"$? $(grep '^contradictions' "$WORK/said")"
tap_done
