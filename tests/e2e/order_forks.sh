# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 11: forks in the middle of a storm. Parent and child free and reallocate the same blocks, the
# child's own threads go on handing blocks to each other. With the kernel's word of the fork and without
# it; with a heap that takes long to fork.
. "$MT_SRCDIR/tests/e2e/order_lib.sh"
for allocator in glibc jemalloc mimalloc tcmalloc torture; do
	TRACK_OPTIONS=
	test $allocator != torture || TRACK_OPTIONS=--order=strict
	storm $allocator -t 4 -n "$(long 100000 4000000)" -f "$(long 8 300)" mixed
done
TRACK_OPTIONS=--bpf=off
storm glibc -t 4 -n "$(long 100000 4000000)" -f "$(long 8 300)" swap
TRACK_OPTIONS="--order=strict --buffer-size=64K"
storm jemalloc -t 16 -n "$(long 100000 4000000)" -f "$(long 8 300)" swap
TRACK_OPTIONS=
storm glibc -t 4 -n "$(long 100000 4000000)" -f "$(long 3 20)" -m "$(long 64 1024)" swap
storm jemalloc -t 4 -n "$(long 100000 4000000)" -f "$(long 3 20)" -m "$(long 64 1024)" mixed
order_done
