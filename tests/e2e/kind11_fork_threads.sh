# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 11: a threaded program forks while its other threads allocate, start and end. No child hangs,
# and each child's blocks are there.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
forks=$(long 100 2000)
counted "forks of a threaded program" "$PROGRAMS/forkthreads" "$forks"
tap_equal "forks of a threaded program: every child's blocks" "$((forks * 100))" "$(count_size counted 777)"
tap_done
