# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 10 and the order: threads hand blocks to each other under jemalloc, in every mode, with 2 to 64
# threads and noise. All events are there, in the exact order.
. "$MT_SRCDIR/tests/e2e/order_lib.sh"
. "$MT_SRCDIR/tests/e2e/order_allocator.sh"
order_of_allocator jemalloc
order_done
