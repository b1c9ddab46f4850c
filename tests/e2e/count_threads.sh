# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 10: address reuse across threads. Eight threads pass blocks around; what one frees another
# gets at once. The artifact equals the independent count and replays without a contradiction.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
rounds=$(long 5 50)
run=1
while test "$run" -le "$rounds"; do
	counted "8 threads pass blocks, run $run" "$PROGRAMS/passer" 8 8000
	run=$((run + 1))
done
TRACK_OPTIONS="--order=strict"
counted "8 threads pass blocks, strict order" "$PROGRAMS/passer" 8 8000
TRACK_OPTIONS="--buffer-size 64K"
counted "8 threads pass blocks, smallest pool" "$PROGRAMS/passer" 8 8000
tap_done
