# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 12: a program that closes all descriptors and uses the numbers anew keeps its own file, and
# loses no record.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
tracked "a program that closes everything" "$PROGRAMS/closer" "$WORK/own"
tap_equal "its file holds what it wrote" "the program's own words" "$(cat "$WORK/own")"
tap_equal "blocks taken after it closed everything" 200000 "$(count_size run 444)"
tap_equal "blocks taken after it closed everything again" 1000 "$(count_size run 445)"

# A daemon is recorded for as long as the command runs, which waits for it here.
if ! cannot_emulate "a daemon that closes everything" "the fork inside daemon() is not seen"; then
	rm -f "$WORK/own"
	tracked "a daemon that closes everything" sh -c '"$1" "$2" daemon | cat' sh "$PROGRAMS/closer" "$WORK/own"
	tap_equal "a daemon that closes everything: its file holds what it wrote" "the program's own words" "$(cat "$WORK/own")"
	tap_equal "a daemon that closes everything: its blocks" "200000 1000" "$(count_size run 444) $(count_size run 445)"
fi

# As shells do it.
tracked "a shell that closes and reuses numbers" bash -c 'for fd in 3 4 5 6 7 8 9; do eval "exec $fd>&-"; done
exec 3>"$1" 9<"$1"; "$2" 100 446; echo words >&3; read -u 9 line; test "$line" = words' bash "$WORK/own" \
	"$PROGRAMS/blocks"
tap_equal "a shell that closes and reuses numbers: its child's blocks" 100 "$(count_size run 446)"

# Started with all its descriptors in use but one: the loader needs one at a time, the memory that it is
# to record into comes by a second. It runs, and is listed: not a quiet zero.
for bpf in auto off; do
	cannot_emulate "no descriptor left (bpf $bpf)" "it needs descriptors itself" && continue
	rm -f "$WORK/run"
	"$LAUNCHER" --bpf=$bpf -o "$WORK/run" -- bash -c 'exec 3<&0 4<&0 5<&0 6<&0 7<&0 8<&0; ulimit -n 10; exec "$1" 100 447' \
		bash "$PROGRAMS/blocks" </dev/null 2>"$WORK/err"
	tap_equal "no descriptor left (bpf $bpf): ends as itself, unrecorded" "0 0" "$? $(count_size run 447)"
	tap_equal "no descriptor left (bpf $bpf): it is listed" 1 "$(grep -c 'untracked: pid .* descriptor was left' "$WORK/err")"
	tap_equal "no descriptor left (bpf $bpf): one image was tracked" 1 \
		"$("$MEMTRACK" stat "$WORK/run" | sed -n 's/^Images *\([0-9]*\) tracked.*/\1/p')"
done
tap_done
