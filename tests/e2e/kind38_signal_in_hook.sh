# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 38: a signal handler maps memory while its thread is in a hook, and leaves by siglongjmp.
# No deadlock, no guard that stays set: what comes after is recorded.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
tracked "handlers that map and jump" "$PROGRAMS/jumper" "$(long 5000 100000)"
tap_equal "handlers that map and jump: the blocks afterwards" 1000 "$(count_size run 70001)"
tap_check "handlers that map and jump: mappings are recorded" test "$(count_type run Mmap)" -gt 1000
tap_done
