# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 43 and 44: set-user-id programs cannot be tracked and are named as such; a program that
# changes its user goes on, recorded.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_command setpriv util-linux
test "$(id -u)" -eq 0 || tap_skip_all "needs root to make a set-user-id program"
chmod 755 "$WORK"
cp "$PROGRAMS/blocks" "$WORK/set_id"
chown 65534 "$WORK/set_id"
chmod 4755 "$WORK/set_id"
"$LAUNCHER" -o "$WORK/run" -- sh -c '"$1" 100 333; "$2" 100 444' sh "$WORK/set_id" "$PROGRAMS/blocks" 2>"$WORK/err"
tap_equal "set-user-id child: the command ends as itself" 0 $?
tap_equal "set-user-id child: its sibling is tracked" 100 "$(count_size run 444)"
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
tap_check "set-user-id child: stat names it" grep -q set_id "$WORK/stat"
tap_check "set-user-id child: nothing of ld.so on stderr" sh -c '! grep -q "ERROR: ld.so" "$1"' sh "$WORK/err"

cp "$PROGRAMS/blocks" "$WORK/blocks"
chmod 755 "$WORK/blocks"
track run setpriv --reuid 65534 --clear-groups "$WORK/blocks" 100 555 2>"$WORK/err"
tap_equal "a program that runs as another user ends as itself" 0 $?
verified "a program that runs as another user" run
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
if test "$(count_size run 555)" -eq 100; then
	tap_ok "a program that runs as another user is recorded"
else
	tap_check "a program that runs as another user is named" grep -q blocks "$WORK/stat"
fi
tap_done
