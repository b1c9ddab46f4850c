# SPDX-License-Identifier: MIT OR Apache-2.0
# A program that locks its memory gets all of its own locked and faulted in, as without us, and not
# the segment, which is hundreds of MiB that nobody will touch.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
"$PROGRAMS/locker" cf >"$WORK/bare" 2>"$WORK/bare.err"
status=$?
test $status -ne 77 || tap_skip_all "no right to lock memory"

for flags in c cf co cfo f; do
	"$PROGRAMS/locker" $flags >"$WORK/bare" 2>"$WORK/bare.err"
	tracked "mlockall $flags" "$PROGRAMS/locker" $flags
	tap_equal "mlockall $flags: faults in what it does without us" "$(cat "$WORK/bare")" "$(cat "$WORK/out")"
	read -r bare_shared bare_locked <"$WORK/bare.err"
	read -r shared locked <"$WORK/err"
	tap_check "mlockall $flags: little shared memory (${shared:-none} KiB)" \
		test "${shared:-99999}" -lt $((bare_shared + 1024))
	tap_check "mlockall $flags: the segment is not locked (${locked:-none} KiB, without us $bare_locked)" \
		test "${locked:-999999}" -lt $((bare_locked + 16384))
done
tap_done
