# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 42: children for another machine run as themselves: nothing on stderr for each of them, named
# as untracked, the rest of the tree recorded; as the command, and by whatever way they are started.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cc=$(make_value CC)
child=$WORK/thirty_two
# gcc-12-multilib alone has no asm/ for -m32; the headers of the other machine do.
$cc -m32 -idirafter "/usr/include/$($cc -print-multiarch)" -o "$child" "$E2E/blocks.c" -pthread 2>/dev/null &&
	"$child" 1 1 ||
	tap_skip_all "no 32-bit programs can be made and run here (package gcc-multilib)"

# launch OPTION... -- COMMAND...
launch()
{
	rm -f "$WORK/run"
	bounded 120 "$LAUNCHER" -o "$WORK/run" "$@" </dev/null >"$WORK/out" 2>"$WORK/err"
}

# foreign TEXT COUNT [OTHERS]: so many are listed, all but OTHERS for that reason, and stderr has but
# our own lines.
foreign()
{
	tap_equal "$1: nothing on stderr but our own" 0 "$(grep -vc '^memtrack: ' "$WORK/err")"
	tap_equal "$1: the artifact counts each" "$2" \
		"$("$MEMTRACK" stat "$WORK/run" | sed -n 's/^Images .* tracked, \([0-9,]*\) untracked.*/\1/p' | tr -d ,)"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	tap_check "$1: stat names them, and why" grep -q 'thirty_two (architecture)' "$WORK/stat"
	tap_equal "$1: and says so of each" "$(($2 - ${3:-0}))" \
		"$("$MEMTRACK" stat --json "$WORK/run" | "$PYTHON" -c 'import json, sys
print(sum(image["reason"] == "architecture" for image in json.load(sys.stdin)["untracked"]))')"
	verified "$1" run
}

count=$(long 100 1000)
launch -- sh -c 'i=0; while [ $i -lt "$3" ]; do "$1" 1 1 || exit; i=$((i + 1)); done; "$2" 100 444' sh \
	"$child" "$PROGRAMS/blocks" "$count"
tap_equal "$count children: the command ends as itself" 0 $?
foreign "$count children" "$count"
tap_equal "$count children: their sibling is tracked" 100 "$(count_size run 444)"
tap_check "$count children: a bounded number of lines ($(wc -l <"$WORK/err"))" test "$(wc -l <"$WORK/err")" -le 25

launch -- "$child" 100 333 quick_exit
tap_equal "as the command: ends as itself" 0 $?
foreign "as the command" 1
tap_check "as the command: it is said before" grep -q '^memtrack: .*another architecture' "$WORK/err"
launch -- "$PROGRAMS/starter" exec 100 444 "$child" 1 1
tap_equal "in a tracked program's place: ends as itself" 0 $?
foreign "in a tracked program's place" 1
tap_equal "in a tracked program's place: what was before is there" 100 "$(count_size run 444)"
for how in posix_spawn posix_spawnp vfork; do
	launch -- "$PROGRAMS/starter" $how 100 444 "$child" 1 1
	tap_equal "by $how: ends as itself" 0 $?
	foreign "by $how" 1
done

PATH=$WORK:$PATH launch -- "$PROGRAMS/starter" posix_spawnp 100 444 thirty_two 1 1
tap_equal "by its name alone: ends as itself" 0 $?
foreign "by its name alone" 1
echo "#!$child" >"$WORK/script"
chmod +x "$WORK/script"
launch -- sh -c '"$1" 1; exit' sh "$WORK/script"
tap_equal "as the interpreter of a script: ends as itself" 0 $?
foreign "as the interpreter of a script" 1

# Its own children are of our machine again; what it was started without they lack too.
launch -- sh -c '"$1" 1 1 exec; exit' sh "$child"
tap_equal "a program of ours after it: the command ends as itself" 0 $?
foreign "a program of ours after it" 2 1
tap_check "a program of ours after it: it is listed" grep -q '/true (environment)' "$WORK/stat"

# Nobody takes us out here: the loader of the other machine says so once for each, as it would for
# any library, and the programs run.
launch --no-follow-env -- sh -c '"$1" 1 1; "$1" 1 1; exit' sh "$child"
tap_equal "with --no-follow-env: the command ends as itself" 0 $?
tap_check "with --no-follow-env: they are named" grep -q 'untracked: .*thirty_two' "$WORK/err"
tap_done
