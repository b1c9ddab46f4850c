# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 3 and 50: the program, or the sidecar, is killed at a random moment. What the program had done
# is known from a page that it shares with nobody who was killed. Program killed: every record is there,
# but for the one that was being made. Sidecar killed: the program goes on to its end, and the file can
# be read up to the last second.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
ulimit -c 0
for what in "target $(long 12 200)" "sidecar $(long 1 15)"; do
	# shellcheck disable=SC2086 # two words
	if bounded "$(long 60 600)" "$PYTHON" -B "$E2E/killed.py" $what "$LAUNCHER" "$MEMTRACK" "$PROGRAMS/tally" "$WORK" \
		>"$WORK/said" 2>&1; then
		tap_ok "$(sed -n 's/^ok - //p' "$WORK/said")"
	else
		tap_fail "${what% *} killed at any moment" "$WORK/said"
	fi
done
tap_done
