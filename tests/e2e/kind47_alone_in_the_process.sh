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

# Orphans are the affair of whom they would be without us: of a subreaper, which the command stays, or
# of process 1 of its namespace, in whose place we stand.
cat >"$WORK/orphan.sh" <<'END'
# orphan.sh FILE: an orphan ends. Is its number free then, or is it there for good?
(sleep 0.1 & echo $! >"$1")
i=0
while kill -0 "$(cat "$1")" 2>/dev/null && test "$i" -lt 30; do
	sleep 0.1
	i=$((i + 1))
done
test "$i" -lt 30
END
cat >"$WORK/reaper.c" <<'END'
#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
/* reaper set COMMAND...; reaper are: how many orphans come, of one child that leaves one behind. */
int main(int argc, char **argv)
{
	int is = 0, came = 0;

	if (argc > 2)
		return prctl(PR_SET_CHILD_SUBREAPER, 1) || execvp(argv[2], argv + 2);
	prctl(PR_GET_CHILD_SUBREAPER, &is);
	if (fork() == 0) {
		if (fork() == 0)
			usleep(100000);
		_exit(0);
	}
	while (wait(NULL) > 0 || errno == EINTR)
		came++;
	return 10 * is + came;
}
END
$(make_value CC) -w -o "$WORK/reaper" "$WORK/reaper.c" || exit 1
for set in "" "$WORK/reaper set"; do
	kind="no subreaper"
	test -z "$set" || kind="a subreaper"
	rm -f "$WORK/run"
	$set "$WORK/reaper"
	plain=$?
	bounded 20 $set "$LAUNCHER" -q -o "$WORK/run" -- "$WORK/reaper" 2>"$WORK/err"
	tap_equal "orphans of a command that is $kind: as without us" "$plain" $?
	bounded 20 env MEMTRACK_OUTPUT="$WORK/manual" $set env LD_PRELOAD="$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so" \
		"$WORK/reaper" 2>"$WORK/err"
	tap_equal "orphans of a command that is $kind, by LD_PRELOAD alone: as without us" "$plain" $?
	bounded 20 "$MEMTRACK" stat --wait "$WORK/manual" >"$WORK/out" 2>&1
	rm -f "$WORK/manual"
done
if unshare -pf --mount-proc true 2>/dev/null; then
	rm -f "$WORK/run"
	bounded 20 unshare -pf --mount-proc --kill-child "$LAUNCHER" -q -o "$WORK/run" -- \
		sh "$WORK/orphan.sh" "$WORK/pid" 2>"$WORK/err"
	tap_verdict "as process 1: an orphan that has ended is gone" $? "$WORK/err"
	bounded 20 unshare -pf --mount-proc --kill-child env MEMTRACK_OUTPUT="$WORK/manual" \
		LD_PRELOAD="$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so" "$WORK/reaper" 2>"$WORK/err"
	tap_equal "process 1 by LD_PRELOAD alone: it sees its own children, and it is said" "2 1" \
		"$? $(grep -c 'as process 1' "$WORK/err")"
else
	tap_skip "as process 1" "no PID namespaces here"
fi
tap_done
