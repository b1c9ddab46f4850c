# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 28: threads that come and go by the thousand, and many at once: exact counts, and no more
# memory than a few threads need, in the program and in the sidecar, which needs no descriptor more.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

# spawned TEXT SERIAL PARALLEL: tracked from a shell, which looks at the sidecar before and after.
# KiB of shared memory that the program has touched are then in $WORK/out.
spawned()
{
	tracked "$1" "$TRACKED_SH" -c 'ls "/proc/$PPID/fd" | wc -l >"$4.before"
		"$1" "$2" "$3" || exit
		ls "/proc/$PPID/fd" | wc -l >"$4.after"
		sed -n "s/^RssAnon:[^0-9]*\([0-9]*\) kB$/\1/p" "/proc/$PPID/status" >"$4.private"' sh \
		"$PROGRAMS/spawner" "$2" "$3" "$WORK/sidecar"
	tap_equal "$1: one block each" "$(($2 + $3))" "$(count_size run 60001)"
	# The programs that count are just being answered, by some descriptors.
	tap_check "$1: no more descriptors in the sidecar ($(cat "$WORK/sidecar.before"), then $(cat "$WORK/sidecar.after"))" \
		test "$(cat "$WORK/sidecar.after")" -le "$(($(cat "$WORK/sidecar.before") + 16))"
	tap_check "$1: little private memory in the sidecar ($(cat "$WORK/sidecar.private") KiB)" \
		test "$(cat "$WORK/sidecar.private")" -lt 65536
}

serial=$(long 4000 20000)
parallel=$(long 500 5000)
# Who tells of a thread's end: the kernel; else the next thread that has its number or its stack.
for bpf in auto off; do
	TRACK_OPTIONS=--bpf=$bpf
	spawned "threads one after the other, bpf $bpf" "$serial" 0
	tap_check "threads one after the other, bpf $bpf: little shared memory ($(cat "$WORK/out") KiB)" \
		test "$(cat "$WORK/out")" -lt 4096
	# In a small pool they have to be looked for.
	TRACK_OPTIONS="--bpf=$bpf --buffer-size 512K"
	spawned "threads at once, bpf $bpf" 0 "$parallel"
	tap_check "threads at once, bpf $bpf: two pages for each, and little more ($(cat "$WORK/out") KiB)" \
		test "$(cat "$WORK/out")" -lt "$((4096 + 8 * parallel))"
done
# A small segment has room for a thousand threads or so: more than that one after the other.
TRACK_OPTIONS=
(ulimit -f 2048 && track run "$PROGRAMS/spawner" "$serial" 0) >"$WORK/out" 2>"$WORK/err"
tap_verdict "in a segment of 1 MiB: ends well" $? "$WORK/err"
verified "in a segment of 1 MiB" run
tap_equal "in a segment of 1 MiB: one block each" "$serial" "$(count_size run 60001)"
tap_done
