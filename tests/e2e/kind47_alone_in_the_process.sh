# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 47, 48 and 49: the program finds no thread, no child, no signal and no descriptor that it
# did not make; its parent, group and session are as without us.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
for what in children threads signals descriptors main_exits; do
	"$PROGRAMS/alone" $what
	plain=$?
	WANT_STATUS=$plain
	tracked "$what" "$PROGRAMS/alone" $what
	test "$plain" -eq 0 || echo "# $what: the plain run ends with $plain too"
done
WANT_STATUS=0
ls -l /proc/self/fd 2>/dev/null | awk 'NF > 8 { print $9 }' | sort >"$WORK/plain"
track run ls -l /proc/self/fd 2>/dev/null | awk 'NF > 8 { print $9 }' | sort >"$WORK/tracked"
tap_check "ls sees the same descriptors" cmp "$WORK/plain" "$WORK/tracked"
session=$(ps -o sid= -p $$)
tap_equal "the session is ours" "$session" "$(track run sh -c 'ps -o sid= -p $$')"
tap_equal "the parent is the process that was started" "same" \
	"$(sh -c 'echo $$ >"$1"; exec "$2" -q -o "$3" -- sh -c "echo \$PPID"' sh "$WORK/pid" "$LAUNCHER" \
		"$WORK/parent" >"$WORK/ppid"; cmp -s "$WORK/pid" "$WORK/ppid" && echo same)"
tap_done
