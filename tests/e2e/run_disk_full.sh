# SPDX-License-Identifier: MIT OR Apache-2.0
# The file cannot take all: the program goes on and ends as itself, the loss is counted and said, what
# was written can be read.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
storm='"$1" 2 '$(long 200000 1000000)' >/dev/null && echo done'

# limited TEXT STATUS: looks at $WORK/kept, what the run left.
limited()
{
	tap_equal "$1: the program ends well" "0 done" "$2 $(tail -n 1 "$WORK/out")"
	tap_check "$1: it is said, also with -q" grep -q 'is incomplete' "$WORK/err"
	tap_equal "$1: nothing else is" 1 "$(wc -l <"$WORK/err")"
	"$MEMTRACK" verify "$WORK/kept" >"$WORK/stat" 2>&1
	tap_equal "$1: verify counts as many, of the same cause" "$(sed -n 's/.*, \([0-9]*\) events lost (\(.*\))$/\2 \1/p' "$WORK/err")" \
		"$(sed -n 's/^losses: .*: //p' "$WORK/stat")"
	"$MEMTRACK" stat "$WORK/kept" >"$WORK/stat" 2>&1
	tap_check "$1: stat reads what is there" grep -qi malloc "$WORK/stat"
}

# in_small OPTION...: the artifact goes onto a file system of 1.5 MiB, and is kept from there.
in_small()
{
	mkdir -p "$WORK/small"
	bounded 120 unshare -m sh -c 'mount -t tmpfs -o size=1500k none "$1" || exit 99
		small=$1 kept=$2
		shift 2
		"$@"
		status=$?
		cp "$small/run" "$kept"
		exit $status' sh "$WORK/small" "$WORK/kept" "$LAUNCHER" "$@" -o "$WORK/small/run" -- \
		sh -c "$storm" sh "$PROGRAMS/passer" >"$WORK/out" 2>"$WORK/err"
}

if unshare -m true 2>/dev/null; then
	in_small -q
	limited "a full disk" $?
	in_small -q --require-complete
	tap_equal "a full disk with --require-complete" 125 $?
else
	tap_skip "a full disk" "no right to make a mount namespace"
fi

rm -f "$WORK/kept"
"$LAUNCHER" -q --max-file-size=1500K -o "$WORK/kept" -- sh -c "$storm" sh "$PROGRAMS/passer" >"$WORK/out" 2>"$WORK/err"
limited "--max-file-size" $?
tap_check "--max-file-size: it is named" grep -q -- --max-file-size "$WORK/err"
tap_check "--max-file-size: the file keeps to it, but for its last words" test "$(stat -c %s "$WORK/kept")" -lt 2000000

rm -f "$WORK/kept"
(ulimit -S -f 3000 && exec "$LAUNCHER" -q -o "$WORK/kept" -- sh -c "$storm" sh "$PROGRAMS/passer") >"$WORK/out" 2>"$WORK/err"
limited "ulimit -f" $?
# A hard limit binds the shared memory too: it becomes smaller.
(ulimit -f 8192 && track kept "$PROGRAMS/blocks" 1000 12345) 2>"$WORK/err"
tap_equal "a hard limit of 4 MiB: the program ends well and is recorded" "0 1000" "$? $(count_size kept 12345)"

# meddled TEXT SCRIPT LINES: SCRIPT, which the command runs in the file's folder, does that to it while it
# is written. How many lines say so, and whether it counts as incomplete.
meddled()
{
	rm -rf "$WORK/meddled"
	mkdir "$WORK/meddled"
	(cd "$WORK/meddled" && bounded 60 "$LAUNCHER" -q --require-complete -o file -- \
		sh -c "until test -s file; do sleep 0.01; done; $2; exit 7") 2>"$WORK/err"
	tap_equal "$1: ends with" "$(test "$3" -eq 0 && echo 7 || echo 125)" $?
	tap_equal "$1: it is said, also with -q" "$3" "$(grep -c "^memtrack: file was $1" "$WORK/err")"
}
if test "$(id -u)" -eq 0 && built_with_bpf; then
	meddled "removed" "rm file" 1
	meddled "removed or replaced" "cp -p file other && mv other file" 1
	meddled "renamed" "mv file other" 1
	meddled "changed by others" ": >file" 1
	meddled "changed by others" "echo more >>file" 1
	meddled "left alone" "mv file other && mv other file && cat file >copy" 0
	meddled "there, under two names" "ln file other" 0
else
	tap_skip "a file that others meddle with" "no eBPF: --require-complete says that it cannot tell"
fi
tap_done
