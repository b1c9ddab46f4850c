# SPDX-License-Identifier: MIT OR Apache-2.0
# Kernels whose pages are larger than 4 KiB, which aarch64 has. Runs under qemu-user alone, which tells
# programs of such pages and refuses mappings that do not begin at one (tests/aarch64.mk).
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
test -n "${MT_EMULATOR:-}" || tap_skip_all "a kernel has pages of one size: run make check-aarch64"

for size in 16384 65536; do
	QEMU_PAGESIZE=$size
	export QEMU_PAGESIZE
	text="pages of $((size / 1024)) KiB"
	tap_equal "$text: programs are told so" "$size" "$(perl -MPOSIX -e 'print sysconf(_SC_PAGESIZE)')"
	for test in shm order_forks control; do
		tap_check "$text: the tests of $test" "$MT_BUILDDIR/tests/unit/test_$test"
	done
	tracked "$text: many blocks" "$PROGRAMS/passer" 4 5000
	tracked "$text: threads" "$PROGRAMS/spawner" 100 200
	tap_equal "$text: threads: all blocks" 300 "$(count_size run 60001)"
	# With such pages qemu leaves the child of a fork its parent's number in glibc's thread block: the
	# child is taken for a thread, and not every record of it before its exec finds its place.
	track run bash -c '"$1" 100 444; "$1" 200 445' bash "$PROGRAMS/blocks" 2>"$WORK/err"
	tap_equal "$text: a child: all blocks" "0 100 200" "$? $(count_size run 444) $(count_size run 445)"
	TRACK_OPTIONS="--buffer-size=64K"
	tracked "$text: the smallest buffers" "$PROGRAMS/blocks" 20000 446
	tap_equal "$text: the smallest buffers: all blocks" 20000 "$(count_size run 446)"
	TRACK_OPTIONS=
done
tap_done
