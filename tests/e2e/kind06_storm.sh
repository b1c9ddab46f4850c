# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 6: an allocation storm. Nothing is lost while the sidecar lives; a sidecar that is stopped
# costs a bounded wait, and what is lost then is counted exactly.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

pairs=$(long 60000 400000)
tracked "8 threads on one processor" taskset -c 0 "$PROGRAMS/passer" 8 "$pairs" churn
dump run >"$WORK/all"
tap_check "8 threads on one processor: every pair is there" test \
	"$(grep -c '"type":"Free"' "$WORK/all")" -ge "$((8 * pairs))"
tap_equal "8 threads on one processor: nothing was lost" 0 "$(lost run)"

heap_events()
{
	dump "$1" | grep -cE '"type":"(Malloc|Calloc|AlignedAlloc|Realloc|Free)"'
}

TRACK_OPTIONS="--buffer-size 64K --max-buffers 1M"
tracked "sidecar stopped for a second" "$PROGRAMS/passer" 4 20000 pause
tap_equal "sidecar stopped for a second: nothing was lost" 0 "$(lost run)"
tap_check "sidecar stopped for a second: every pair is there" test "$(count_type run Free)" -ge 80000

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
tap_done
