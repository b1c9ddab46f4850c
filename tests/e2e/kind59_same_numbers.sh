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
tap_done
