# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 27: destructors of thread-specific data take and free blocks while the thread ends; detached
# threads end while main calls exit().
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
tracked "destructors of joined threads" "$PROGRAMS/tsd" 50
dump run >"$WORK/all"
for size in 50000 50001 50002 50003; do
	tap_equal "destructors of joined threads: blocks of $size" 50 \
		"$(grep -c "\"type\":\"Malloc\",\"size\":${size}[,}]" "$WORK/all")"
done
run=1
while test "$run" -le "$(long 3 30)"; do
	tracked "detached threads at exit, run $run" "$PROGRAMS/tsd" 50 detached
	run=$((run + 1))
done
tap_done
