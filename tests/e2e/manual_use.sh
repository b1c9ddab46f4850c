# SPDX-License-Identifier: MIT OR Apache-2.0
# Without the launcher: LD_PRELOAD alone records into the file named, starts no child that the
# program could see, and completes the file when the last process of the tree has ended.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
shim=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
cd "$WORK" || exit 1

# alone NAME COMMAND...: what it says is in the file $err. (One for each: a sidecar may sum up late.)
alone()
{
	name=$1
	err=$WORK/err.$name
	shift
	bounded 60 env MEMTRACK_OUTPUT="$WORK/$name" LD_PRELOAD="$shim" "$@" >"$WORK/out" 2>"$err"
}

completed()
{
	tap_check "$1: the file is completed" bounded 20 "$MEMTRACK" stat --wait "$WORK/$2"
	verified "$1" "$2"
}

alone one "$PROGRAMS/blocks" 1000 12345
tap_verdict "one program: ends as itself" $? "$err"
completed "one program" one
tap_equal "one program: its blocks" 1000 "$(count_size one 12345)"
alone killed "$PROGRAMS/blocks" 1000 12345 kill
tap_equal "a program that is killed: ends as itself" 137 $?
completed "a program that is killed" killed
tap_equal "a program that is killed: its blocks" 1000 "$(count_size killed 12345)"
alone tree sh -c '"$1" 100 333; "$1" 100 444 _exit; exit 4' sh "$PROGRAMS/blocks"
tap_equal "a shell and its children: ends as itself" 4 $?
completed "a shell and its children" tree
tap_equal "a shell and its children: all blocks" "100 100" "$(count_size tree 333) $(count_size tree 444)"
for what in children threads main_exits; do
	alone "$what" "$PROGRAMS/alone" $what
	tap_verdict "$what: nothing of ours to be seen" $? "$err"
done
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
"$PROGRAMS/alone" descriptors
plain=$?
alone descriptors "$PROGRAMS/alone" descriptors
tap_equal "descriptors: as without us" $plain $?
MEMTRACK_OUTPUT=/no/such/folder/file LD_PRELOAD=$shim "$PROGRAMS/blocks" 10 10 2>"$WORK/err"
tap_check "an output that cannot be written: said once" test "$(wc -l <"$WORK/err")" -eq 1
# unstarted SIDECAR REASON
unstarted()
{
	MEMTRACK_SIDECAR=$1 alone "$(basename "$1")" "$PROGRAMS/blocks" 10 10
	tap_verdict "$1 for a sidecar: the program ends as itself" $? "$err"
	tap_equal "$1 for a sidecar: said once" "memtrack: $2; the program runs untracked" "$(cat "$err")"
}
unstarted /no/such/sidecar "memtrack-sidecar was not found; set MEMTRACK_SIDECAR to its path"
unstarted /bin/false "the sidecar could not be started"
tap_done
