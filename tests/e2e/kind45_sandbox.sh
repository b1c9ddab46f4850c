# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 45: a program that forbids itself all system calls but the allocator's own goes on, and its
# records too: the hooks need none. In strict mode recording stops, counted.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
blocks=$(long 300000 1000000)
"$PROGRAMS/sandbox" filter 10
test $? -eq 0 || tap_skip_all "no seccomp here"
tracked "seccomp filter" "$PROGRAMS/sandbox" filter "$blocks"
tap_equal "seccomp filter: every block is there" "$blocks" "$(count_size run 80001)"
TRACK_OPTIONS="--buffer-size 64K"
tracked "seccomp filter, smallest pool" "$PROGRAMS/sandbox" filter "$blocks"
tap_equal "seccomp filter, smallest pool: every block is there" "$blocks" "$(count_size run 80001)"
tracked "seccomp filter, and one that is refused" "$PROGRAMS/sandbox" again "$blocks"
tap_equal "seccomp filter, and one that is refused: every block is there" "$blocks" "$(count_size run 80001)"
TRACK_OPTIONS=
track run "$PROGRAMS/sandbox" strict 1000 2>"$WORK/err"
tap_verdict "seccomp strict: the program ends well" $? "$WORK/err"
tap_equal "seccomp strict: recorded and lost are all" 2000 "$((2 * $(count_size run 80001) + $(lost run)))"
tap_done
