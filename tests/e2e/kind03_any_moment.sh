# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 3 and 50: the program, or the sidecar, is killed at a random moment. What the program had done
# is known from a page that it shares with nobody who was killed. Program killed: every record is there,
# but for the one that was being made. Sidecar killed: the program goes on to its end, and the file can
# be read up to the last second.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
ulimit -c 0
for what in "target $(long 12 200)" "sidecar $(long 1 15)" "idle $(long 1 15)"; do
	mkdir "$WORK/${what% *}"
	# shellcheck disable=SC2086 # two words
	bounded "$(long 60 600)" "$PYTHON" -B "$E2E/killed.py" $what "$LAUNCHER" "$MEMTRACK" "$PROGRAMS/tally" \
		"$WORK/${what% *}" >"$WORK/${what% *}.said" 2>&1 &
done
wait
for what in target sidecar idle; do
	if grep -q '^ok' "$WORK/$what.said"; then
		tap_ok "$(sed -n 's/^ok - //p' "$WORK/$what.said")"
	else
		tap_fail "$what killed at any moment" "$WORK/$what.said"
	fi
done
tap_done
