# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 59: nothing of ours in the numbers. The same program gives the same stream of types and sizes
# every time, whatever the path of the output and the size of the environment.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

# stream: of the last run, without addresses and times.
stream()
{
	dump run | grep -v -e '"type":"Mapping"' | sed -e 's/"pid":[0-9]*,"tid":[0-9]*,//' \
		-e 's/"timestamp":[0-9]*,"addr":[0-9]*,//' -e 's/"old_addr":[1-9][0-9]*,/"old_addr":N,/'
}

for program in "$PROGRAMS/entries" "$PROGRAMS/newdelete" "$PROGRAMS/forker 0"; do
	name=${program##*/}
	track run $program >/dev/null 2>"$WORK/err"
	stream >"$WORK/first"
	tap_check "$name: there is a stream" test -s "$WORK/first"
	run=2
	while test "$run" -le "$(long 4 20)"; do
		PADDING=$(printf "%0$((run * 1000))d" 0)
		export PADDING
		track run $program >/dev/null 2>"$WORK/err"
		stream >"$WORK/again"
		cmp -s "$WORK/first" "$WORK/again" || break
		run=$((run + 1))
	done
	tap_check "$name: run $run is the same as the first" cmp "$WORK/first" "$WORK/again"
	unset PADDING
done
# A program that does nothing: the same few events, wherever the file goes, and little memory of ours.
echo 'int main(void) { return 0; }' >"$WORK/empty.c"
$(make_value CC) -o "$WORK/empty" "$WORK/empty.c" || exit 1
mkdir -p "$WORK/a/much/longer/path/than/the/other"
for file in "$WORK/e" "$WORK/a/much/longer/path/than/the/other/artifact"; do
	"$LAUNCHER" -q -o "$file" -- "$WORK/empty" 2>"$WORK/err"
	"$MEMTRACK" dump "$file" | grep -c -E '"type":"(Malloc|Calloc|AlignedAlloc|Realloc|Free|Mmap|Munmap)"'
done >"$WORK/counts"
tap_equal "an empty program: no event of the heap, none of ours" "0 0" "$(paste -sd' ' "$WORK/counts")"
peak='$1 == "VmHWM:" { print $2 }'
plain=$(awk "$peak" /proc/self/status)
track run awk "$peak" /proc/self/status >"$WORK/out" 2>"$WORK/err"
tap_check "peak memory of a small program ($plain KiB, with us $(cat "$WORK/out"))" test "$(cat "$WORK/out")" -le "$((plain + 1024))"
tap_done
