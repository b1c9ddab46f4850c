# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 12: a program that closes all descriptors and uses the numbers anew keeps its own file, and
# loses no record.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
tracked "a program that closes everything" "$PROGRAMS/closer" "$WORK/own"
tap_equal "its file holds what it wrote" "the program's own words" "$(cat "$WORK/own")"
tap_equal "blocks taken after it closed everything" 40000 "$(count_size run 444)"
tap_equal "blocks taken after it closed everything again" 1000 "$(count_size run 445)"
tap_done
