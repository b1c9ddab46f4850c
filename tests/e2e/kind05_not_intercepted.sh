# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 5: a static program cannot be intercepted. It runs as itself and is named, never a quiet zero.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cc=$(make_value CC)

untracked()
{
	tap_check "$1: stderr says so" grep -q "untracked" "$WORK/err"
	tap_check "$1: it is named there" grep -q "$2" "$WORK/err"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	tap_check "$1: stat names it" grep -q "$2" "$WORK/stat"
}

if $cc -static -o "$WORK/alone_static" "$E2E/blocks.c" -pthread 2>"$WORK/err"; then
	"$LAUNCHER" -o "$WORK/run" -- "$WORK/alone_static" 100 333 2>"$WORK/err"
	tap_equal "static program: ends as itself" 0 $?
	untracked "static program" alone_static
	rm -f "$WORK/run"
	"$LAUNCHER" -o "$WORK/run" -- sh -c '"$1" 100 333; "$2" 100 444' sh "$WORK/alone_static" \
		"$PROGRAMS/blocks" 2>"$WORK/err"
	tap_equal "static child: the command ends as itself" 0 $?
	untracked "static child" alone_static
	tap_equal "static child: its sibling is tracked" 100 "$(count_size run 444)"
	rm -f "$WORK/run"
	"$LAUNCHER" -q --require-complete -o "$WORK/run" -- "$WORK/alone_static" 100 333 2>"$WORK/err"
	tap_equal "static program: --require-complete makes it a failure" 125 $?
	rm -f "$WORK/run"
else
	tap_skip "static program" "no static libc to link with"
fi
if $cc -static-pie -o "$WORK/static_pie" "$E2E/blocks.c" -pthread 2>/dev/null; then
	"$LAUNCHER" -o "$WORK/run" -- "$WORK/static_pie" 100 333 2>"$WORK/err"
	tap_equal "static PIE program: ends as itself" 0 $?
	untracked "static PIE program" static_pie
else
	tap_skip "static PIE program" "no static libc to link with"
fi
tap_done
