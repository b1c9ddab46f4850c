# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 10 and the order under an allocator that hands blocks from thread to thread by plain loads and
# stores. With --order=strict every allocation is in its exact place; without it nothing contradicts
# itself, and how many are out of place is told.
. "$MT_SRCDIR/tests/e2e/order_lib.sh"
TRACK_OPTIONS=--order=strict
storm torture -t 2 -n "$(long 300000 8000000)" hand
storm torture -t 8 -n "$(long 150000 4000000)" hand
storm torture -t 8 -n "$(long 150000 4000000)" swap
storm torture -t 8 -n "$(long 150000 4000000)" -s 2 -y 0 mixed
storm torture -t 64 -n "$(long 200000 4000000)" -s 2 -y 0 batch
TRACK_OPTIONS=
ANY_PLACE=1
storm torture -t 2 -n "$(long 300000 8000000)" hand
storm torture -t 8 -n "$(long 150000 4000000)" swap
storm torture -t 64 -n "$(long 150000 4000000)" mixed
order_done
