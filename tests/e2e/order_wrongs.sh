# SPDX-License-Identifier: MIT OR Apache-2.0
# Double frees and frees of what never was a block, in the middle of a storm: each is flagged, the
# number is exact, and no other event is disturbed. A block that is freed twice may be in use again
# after 2 ms, or (-r) at once: then a free of the new owner may be the one that is flagged.
. "$MT_SRCDIR/tests/e2e/order_lib.sh"
TRACK_OPTIONS=--order=strict
storm_of_wrongs -t 2 -n "$(long 200000 3000000)" -w "$(long 3000 100000)" hand
storm_of_wrongs -t 8 -n "$(long 200000 3000000)" -w "$(long 3000 100000)" mixed
storm_of_wrongs -t 8 -n "$(long 200000 3000000)" -w "$(long 1000 10000)" -r swap
TRACK_OPTIONS=
ANY_PLACE=1
storm_of_wrongs -t 4 -n "$(long 200000 3000000)" -w "$(long 3000 100000)" hand
order_done
