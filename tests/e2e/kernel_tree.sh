# SPDX-License-Identifier: MIT OR Apache-2.0
# The process tree of a shell script, as each source of process events sees it, is the one that
# strace sees.
. "$MT_SRCDIR/tests/e2e/kernel_lib.sh"

cat >"$work/script" <<'END'
/bin/true
(/bin/false; exit 7)
/bin/echo one | /bin/cat >/dev/null
/bin/sh -c '/bin/sh -c "/bin/true; exec /bin/echo deep" >/dev/null; exit 5'
(kill -9 $(sh -c 'echo $PPID'))
/nonexistent/program
i=0
while [ $i -lt 20 ]; do (exit $i); i=$((i + 1)); done
exec /bin/sh -c 'exit 42'
END

if ! command -v strace >/dev/null; then
	skip "process tree" "strace is not installed"
	plan
fi
if ! strace -f -e trace=process -o "$work/strace" sh "$work/script" 2>/dev/null &&
   [ ! -s "$work/strace" ]; then
	skip "process tree" "strace cannot trace here"
	plan
fi

for source in tp_btf raw_tp "perf --perf-tree" "perf --perf-all"; do
	name="$source sees the tree that strace sees"
	status=with_status
	[ "${source#perf}" != "$source" ] && status=without_status
	# shellcheck disable=SC2086
	run_trace "$name" "$work/trace" "$work/err" --process=$source -- sh "$work/script" \
		2>/dev/null || continue
	tree_of_strace $status <"$work/strace" >"$work/want"
	grep '"type"' "$work/trace" | tree_of_trace $status >"$work/got"
	if [ -s "$work/want" ] && diff "$work/want" "$work/got" >"$work/diff"; then
		ok "$name"
	else
		not_ok "$name" "$work/diff" "$work/trace"
	fi
done
plan
