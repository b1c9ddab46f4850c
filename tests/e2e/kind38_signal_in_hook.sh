# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 38: a signal handler maps memory while its thread is in a hook, and leaves by siglongjmp.
# No deadlock, no guard that stays set: what comes after is recorded.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
track run "$PROGRAMS/jumper" "$(long 5000 100000)" </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "handlers that map and jump: ends with 0" $? "$WORK/err"
"$MEMTRACK" verify "$WORK/run" >"$WORK/said" 2>&1
tap_check "handlers that map and jump: no contradictions" grep -q '^contradictions: none' "$WORK/said"
tap_check "handlers that map and jump: nothing is lost but what a handler did inside a hook, counted" \
	grep -qE '^losses: (none|[0-9,]+ records: signal [0-9,]+)$' "$WORK/said"
tap_equal "handlers that map and jump: the blocks afterwards" 1000 "$(count_size run 70001)"
tap_check "handlers that map and jump: mappings are recorded" test "$(count_type run Mmap)" -gt 1000
# None is lost without being counted: a handler inside a write puts two off at most.
track run "$PROGRAMS/jumper" "$(long 1500 20000)" stay </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "handlers that map and return: ends with 0" $? "$WORK/err"
tap_equal "handlers that map and return: recorded and lost are all" "$(cat "$WORK/out")" \
	$(($(dump run --type Mmap,Munmap | wc -l) + $(lost run)))
tap_done
