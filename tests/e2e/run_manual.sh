# SPDX-License-Identifier: MIT OR Apache-2.0
# Manual use: LD_PRELOAD alone. The program starts its own sidecar, which ends with the tree.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
library=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
MEMTRACK_OUTPUT=$WORK/run
export MEMTRACK_OUTPUT

LD_PRELOAD=$library "$PROGRAMS/blocks" 1000 12345 >"$WORK/out" 2>"$WORK/err"
tap_equal "a program by itself ends as itself" 0 $?
tap_check "a program by itself: nothing on standard output" test ! -s "$WORK/out"
tap_check "a program by itself: the file is finished" bounded 20 "$MEMTRACK" stat --wait "$WORK/run"
tap_equal "a program by itself: all blocks" 1000 "$(count_size run 12345)"
verified "a program by itself" run
tap_check "a program by itself: the summary comes" wait_for 10 grep -q "^memtrack: $WORK/run: .* 0 lost" "$WORK/err"
tap_equal "a program by itself: the summary is all" 1 "$(wc -l <"$WORK/err")"

# A pipe is not held open for the summary: who reads it to its end gets that when the program ends,
# however long others of the tree live. Who still reads gets the summary.
mkfifo "$WORK/hold" "$WORK/pipe"
rm -f "$WORK/run"
LD_PRELOAD=$library sh -c '(exec 2>/dev/null; read -r line <"$1") & echo said >&2' sh "$WORK/hold" 2>"$WORK/pipe" &
tap_equal "a pipe ends with the program" "said" "$(bounded 20 cat "$WORK/pipe")"
echo go >"$WORK/hold"
bounded 20 "$MEMTRACK" stat --wait "$WORK/run" >"$WORK/stat"
rm -f "$WORK/run"
said=$({
	LD_PRELOAD=$library "$PROGRAMS/blocks" 10 10
	bounded 20 "$MEMTRACK" stat --wait "$WORK/run" >"$WORK/stat"
	sleep 0.5
} 2>&1)
tap_check "who still reads the pipe gets the summary" \
	sh -c 'echo "$1" | grep -q "^memtrack: .* 0 lost"' sh "$said"
rm -f "$WORK/run"
MEMTRACK_QUIET=1 LD_PRELOAD=$library "$PROGRAMS/blocks" 10 10 2>"$WORK/err"
bounded 20 "$MEMTRACK" verify --wait "$WORK/run" >"$WORK/verify"
tap_equal "verify --wait: is clean" 0 $?
sleep 0.5
tap_check "quiet: no summary" test ! -s "$WORK/err"

# Nobody gets the sidecar's status: it is said, and verify gives it.
for bpf in auto off; do
	rm -f "$WORK/run"
	MEMTRACK_BPF=$bpf MEMTRACK_QUIET=1 MEMTRACK_REQUIRE_COMPLETE=1 LD_PRELOAD=$library \
		"$PROGRAMS/blocks" 10 10 2>"$WORK/err"
	tap_equal "require-complete, bpf $bpf: the program ends as itself" 0 $?
	bounded 20 "$MEMTRACK" verify --wait --require-complete "$WORK/run" >"$WORK/verify"
	echo $? >"$WORK/status"
	"$MEMTRACK" stat "$WORK/run" | grep -q 'untracked: not known'
	knows=$?
	tap_equal "require-complete, bpf $bpf: verify tells" $((1 - knows)) "$(cat "$WORK/status")"
	if test "$knows" -eq 1; then
		sleep 0.5
		tap_check "require-complete, bpf $bpf: all is well, nothing is said" test ! -s "$WORK/err"
	else
		tap_check "require-complete, bpf $bpf: it is said, although quiet" \
			wait_for 10 grep -q 'not complete (--require-complete)' "$WORK/err"
	fi
done

# By hand: whoever starts the sidecar gets its status.
by_hand()
{
	sidecar=$(find_built memtrack-sidecar)
	mkfifo "$WORK/go.$1"
	sh -c 'read -r line <"$1"; exec "$2" 10 10' sh "$WORK/go.$1" "$PROGRAMS/blocks" &
	root=$!
	"$sidecar" --attach $root --ready-fd 1 --require-complete "--bpf=$1" -q -o "$WORK/hand.$1" \
		>"$WORK/ready" 2>"$WORK/err" &
	attached=$!
	tap_check "by hand, bpf $1: it says when it is ready" wait_for 10 grep -q '^1:' "$WORK/ready"
	echo go >"$WORK/go.$1"
	wait $root
	wait $attached
	tap_equal "by hand, bpf $1: its status says that the program was untracked" 125 $?
}
by_hand auto
by_hand off

# What the first image had mapped before the sidecar's sources were open is known all the same, once.
for bpf in auto off; do
	rm -f "$WORK/run"
	MEMTRACK_BPF=$bpf LD_PRELOAD=$library "$PROGRAMS/blocks" 10 10
	bounded 20 "$MEMTRACK" stat --wait "$WORK/run" >"$WORK/stat"
	tap_check "bpf $bpf: the program is named" grep -q "/blocks\$" "$WORK/stat"
	dump run | sed -n 's/.*"type":"\(Exec\|Mapping\)".*/\1/p' | head -n 2 | tr '\n' ' ' >"$WORK/order"
	tap_equal "bpf $bpf: mappings follow the Exec" "Exec Mapping " "$(cat "$WORK/order")"
	for file in "$(readlink -f "$PROGRAMS/blocks")" "$(readlink -f "$library")"; do
		tap_equal "bpf $bpf: ${file##*/} is mapped once" 1 \
			"$(dump run | grep '"type":"Mapping"' | grep -c "\"$file\"")"
	done
done

rm -f "$WORK/run"
LD_PRELOAD=$library sh -c '"$1" 100 11111; (exec "$1" 100 22222); exec "$1" 100 33333' sh "$PROGRAMS/blocks" 2>"$WORK/err"
tap_equal "a tree ends as itself" 0 $?
tap_check "a tree: the file is finished" bounded 20 "$MEMTRACK" stat --wait "$WORK/run"
tap_equal "a tree: all images are in one file" "100 100 100" \
	"$(count_size run 11111) $(count_size run 22222) $(count_size run 33333)"
verified "a tree" run

# Nobody puts the session into what goes by the bare system call: it is the environment that has it.
rm -f "$WORK/run"
LD_PRELOAD=$library "$PROGRAMS/starter" kept 100 55555 "$PROGRAMS/blocks" 100 55556 2>"$WORK/err"
tap_equal "a bare exec ends as itself" 0 $?
tap_check "a bare exec: the file is finished" bounded 20 "$MEMTRACK" stat --wait "$WORK/run"
tap_equal "a bare exec: nothing but the summary is said" 0 "$(grep -vc "^memtrack: $WORK/run: .* 0 lost" "$WORK/err")"
tap_equal "a bare exec: both images are in one file" "100 100" "$(count_size run 55555) $(count_size run 55556)"

# The sidecar outlives the first process as long as there are others, and holds nothing of theirs open.
rm -f "$WORK/run"
said=$(LD_PRELOAD=$library bounded 20 sh -c '(exec >/dev/null 2>&1; read line <"$2"; exec "$1" 100 44444) &
	echo hi' sh "$PROGRAMS/blocks" "$(mkfifo "$WORK/fifo"; echo "$WORK/fifo")" 2>/dev/null)
tap_equal "a daemon: the output ends with the program" "hi" "$said"
echo go >"$WORK/fifo"
tap_check "a daemon: the file is finished when it has ended" bounded 20 "$MEMTRACK" stat --wait "$WORK/run"
tap_equal "a daemon: its blocks are there" 100 "$(count_size run 44444)"

MEMTRACK_OUTPUT=/no/such/folder/file
LD_PRELOAD=$library "$PROGRAMS/blocks" 1000 12345 2>"$WORK/err"
tap_equal "an output that cannot be written: the program runs all the same" 0 $?
sleep 0.5
tap_equal "an output that cannot be written: it is said once" 1 "$(grep -c memtrack "$WORK/err")"

# fails HOW SECONDS SAID: the tree starts a sidecar that is the script on standard input. It cannot
# serve: the whole tree waits for at most so long, once, and runs; it is said, once, and why.
fails()
{
	cat >"$WORK/sidecar" && chmod +x "$WORK/sidecar"
	rm -f "$WORK/run" "$WORK/ended"
	since=$(date +%s)
	MT_SIDECAR=$(find_built memtrack-sidecar) MT_ENDED=$WORK/ended MEMTRACK_MAX_WAIT=0.1 \
		MEMTRACK_SIDECAR=$WORK/sidecar LD_PRELOAD=$library bounded 60 sh -c \
		'for i in 1 2 3 4; do "$1" 10 10; done; (exec "$1" 10 10) & wait $!
		sleep "$2"; exit 7' sh "$PROGRAMS/blocks" "${LIVES:-0}" 2>"$WORK/err"
	tap_equal "$1: the tree ends as itself" 7 $?
	took=$(($(date +%s) - since))
	tap_check "$1: it waits once and not for long ($took s)" test $took -le "$2"
	tap_equal "$1: it is said once that nothing is tracked" 1 "$(grep -c 'runs untracked' "$WORK/err")"
	tap_check "$1: it is said why" grep -q "^memtrack: $3" "$WORK/err"
}
MEMTRACK_OUTPUT=$WORK/run
fails "a sidecar that is killed before it answers" 5 "the sidecar could not be started; " <<'END'
#!/bin/sh
kill -9 $$
END
fails "a sidecar that never answers" 7 "the sidecar did not say that it is ready; " <<'END'
#!/bin/sh
sleep 20
END
# Whoever started it holds the pipe to the program open for as long as it runs.
fails "a sidecar whose answer fails" 5 "cannot tell the program that it is recorded: " <<'END'
#!/bin/sh
"$MT_SIDECAR" --attach "$2" --ready-fd 1 >/dev/full
echo $? >"$MT_ENDED"
END
tap_equal "a sidecar whose answer fails: it ends" 125 "$(cat "$WORK/ended")"
tap_check "a sidecar whose answer fails: nothing is left" test ! -e "$WORK/run"
fails "a sidecar whose word of an error fails" 5 ".*: the artifact needs a file" <<'END'
#!/bin/sh
"$MT_SIDECAR" --attach "$2" --ready-fd 1 -o /dev/stdout >/dev/full
END
# It comes when nobody waits any more, while the program runs.
LIVES=6
fails "a sidecar that comes late" 12 "the sidecar did not say that it is ready; " <<'END'
#!/bin/sh
sleep 3
"$MT_SIDECAR" "$@"
echo $? >"$MT_ENDED"
END
tap_check "a sidecar that comes late: it ends" test -s "$WORK/ended"
tap_done
