# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 10 and the order: threads hand blocks to each other under glibc's allocator, in every mode, with
# 2 to 64 threads, noise and small buffers. All events are there, in the exact order; or counted, where
# records may be dropped.
. "$MT_SRCDIR/tests/e2e/order_lib.sh"
. "$MT_SRCDIR/tests/e2e/order_allocator.sh"
order_of_allocator glibc
TRACK_OPTIONS="--buffer-size=64K"
storm glibc -t 8 -n "$(long 150000 3000000)" mixed
TRACK_OPTIONS="--on-full=drop --buffer-size=256K"
storm_of_losses glibc -t 8 -n "$(long 300000 3000000)" -y 0 swap
order_done
