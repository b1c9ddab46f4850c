# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 28: threads that come and go by the thousand, and many at once: exact counts, and no more
# memory than a few threads need.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
serial=$(long 4000 20000)
tracked "threads one after the other" "$PROGRAMS/spawner" "$serial" 0
tap_equal "threads one after the other: one block each" "$serial" "$(count_size run 60001)"
tap_check "threads one after the other: little shared memory ($(cat "$WORK/out") KiB)" \
	test "$(cat "$WORK/out")" -lt 16384
parallel=$(long 500 5000)
tracked "threads at once" "$PROGRAMS/spawner" 0 "$parallel"
tap_equal "threads at once: one block each" "$parallel" "$(count_size run 60001)"
tap_done
