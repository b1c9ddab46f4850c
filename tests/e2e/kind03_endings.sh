# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 3: however a process ends, every record that it made is there.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

ends_with()
{
	WANT_STATUS=$2
	tracked "end by $1" "$PROGRAMS/blocks" 1000 54321 "$1"
	tap_equal "end by $1: all 1000 blocks" 1000 "$(count_size run 54321)"
}

ulimit -c 0
for end in return exit _exit quick_exit exit_group thread_exit pthread_exit exec; do
	ends_with $end 0
done
ends_with abort 134
ends_with segv 139
ends_with term 143
ends_with kill 137
WANT_STATUS=0
tap_done
