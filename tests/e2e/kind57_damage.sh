# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 57: the reader trusts nothing. A real artifact, cut or with bits flipped at many places, is
# read as far as it is whole, or refused; never a crash, and a cut is said.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
track run "$PROGRAMS/forker" 5 2>"$WORK/err"
tap_verdict "a run to damage" $? "$WORK/err"
size=$(wc -c <"$WORK/run")
bad=
silent=
inside=0
cuts=0
step=$(long $((size / 40 + 1)) 97)
at=0
# All of the last bytes, where the closing of the file is, and places all over it.
for at in $(seq 0 "$step" "$((size - 1))") $(seq "$((size > 4096 ? size - 4096 : 0))" "$(long 128 1)" "$((size - 1))"); do
	head -c "$at" "$WORK/run" >"$WORK/changed"
	bounded 10 "$MEMTRACK" stat "$WORK/changed" >"$WORK/out" 2>"$WORK/err"
	status=$?
	test $status -le 3 || bad="$bad cut:$at:$status"
	test -s "$WORK/err" || silent="$silent $at"
	test $status -ne 3 || inside=$((inside + 1))
	cuts=$((cuts + 1))
done
tap_equal "cut anywhere: no crash" "" "$bad"
tap_equal "cut anywhere: it is said" "" "$silent"
# Between two frames nothing is damaged; what is missing is that the file was closed.
unsaid=
between=0
for at in $(LC_ALL=C grep -Fabo "$(printf ']*M\030')" "$WORK/run" | cut -d: -f1); do
	head -c "$at" "$WORK/run" >"$WORK/changed"
	bounded 10 "$MEMTRACK" stat "$WORK/changed" >"$WORK/out" 2>"$WORK/err"
	test $? -eq 0 || continue
	between=$((between + 1))
	grep -q 'not closed' "$WORK/err" || unsaid="$unsaid $at"
done
tap_equal "cut between two frames ($between places): it is said that the file was not closed" "" "$unsaid"
tap_check "cut between two frames: there are such places" test "$between" -gt 0
tap_check "cut anywhere: most places are inside a frame, which is damage ($inside of $cuts)" test "$inside" -gt "$((cuts / 2))"
bad=
at=7
while test "$at" -lt "$size"; do
	cp "$WORK/run" "$WORK/changed"
	printf '\377' | dd of="$WORK/changed" bs=1 seek="$at" conv=notrunc 2>/dev/null
	for command in stat verify dump; do
		bounded 10 "$MEMTRACK" $command "$WORK/changed" >"$WORK/out" 2>"$WORK/err"
		status=$?
		test $status -le 3 || bad="$bad $command:$at:$status"
		! grep -q 'Sanitizer\|runtime error' "$WORK/err" || bad="$bad $command:$at:sanitizer"
	done
	at=$((at + step))
done
tap_equal "a byte changed anywhere: no crash" "" "$bad"
# One bit, in frames of events: by its checksum each is seen, also where it would decode as another event.
# Where they are: hints of version 2 ("MTRK", 2, 2) have the length of the frame behind them.
unseen=
flips=0
for hint in $(LC_ALL=C grep -aobP 'MTRK\x02\x02' "$WORK/run" | cut -d: -f1); do
	# The tag stands 8 bytes behind the frame's start; length at 20, data at 72 from there.
	len=$(od -An -v -tu4 -j$((hint + 12)) -N4 "$WORK/run" | tr -d ' ')
	test "$len" -gt 40 || continue
	for part in $(seq 1 60); do
		at=$((hint + 64 + len * part / 61))
		cp "$WORK/run" "$WORK/changed"
		old=$(od -An -v -tu1 -j$at -N1 "$WORK/run" | tr -d ' ')
		printf "\\$(printf %o $((old ^ 1 << part % 8)))" |
			dd of="$WORK/changed" bs=1 seek=$at conv=notrunc 2>/dev/null
		for command in stat verify dump; do
			"$MEMTRACK" $command "$WORK/changed" >"$WORK/out" 2>"$WORK/err"
			test $? -eq 3 && grep -q "damaged in frame [0-9]* at offset $((hint + 64)): " "$WORK/err" ||
				unseen="$unseen $command:$at"
		done
		flips=$((flips + 1))
	done
	test $flips -lt 60 || break
done
tap_equal "one bit in a frame of events ($flips times): it is said of which" "" "$unseen"
tap_check "one bit in a frame of events: there were some" test $flips -ge 60
# One bit in a hint, in each of its bytes behind the tag: the only checksum of the frame behind goes with it.
unseen=
hint=$(LC_ALL=C grep -aobP 'MTRK\x02\x02' "$WORK/run" | head -1 | cut -d: -f1)
for at in $(seq $((hint + 8)) $((hint + 63))); do
	cp "$WORK/run" "$WORK/changed"
	old=$(od -An -v -tu1 -j$at -N1 "$WORK/run" | tr -d ' ')
	printf "\\$(printf %o $((old ^ 1 << at % 8)))" | dd of="$WORK/changed" bs=1 seek=$at conv=notrunc 2>/dev/null
	for command in "stat" "verify" "dump" "dump --type exit"; do
		"$MEMTRACK" $command "$WORK/changed" >"$WORK/out" 2>"$WORK/err"
		test $? -eq 3 && grep -q "1 damaged hint was passed over: its frame's events cannot be checked" "$WORK/err" ||
			unseen="$unseen $command:$((at - hint))"
	done
done
tap_equal "one bit in a hint: it is said" "" "$unseen"
tap_check "one bit in a hint: repair gives it a new one" "$MEMTRACK" repair "$WORK/changed" "$WORK/mended"
tap_check "one bit in a hint: what repair made is clean" "$MEMTRACK" stat "$WORK/mended"
# Whole frames: the last of events, which nothing else speaks of, missing or there twice.
track run "$PROGRAMS/blocks" 1000 57 2>"$WORK/err"
hint=$(LC_ALL=C grep -aobP 'MTRK\x02\x02' "$WORK/run" | tail -n 1 | cut -d: -f1)
from=$((hint + 64))
to=$((from + $(od -An -v -tu4 -j$((hint + 12)) -N4 "$WORK/run" | tr -d ' ')))
for how in missing twice; do
	{
		head -c $from "$WORK/run"
		test $how = missing || { tail -c +$((from + 1)) "$WORK/run" | head -c $((to - from)); tail -c +$((from + 1)) "$WORK/run" | head -c $((to - from)); }
		tail -c +$((to + 1)) "$WORK/run"
	} >"$WORK/changed"
	for command in stat verify; do
		"$MEMTRACK" $command "$WORK/changed" >"$WORK/out" 2>"$WORK/err"
		tap_equal "a whole frame $how: $command counts" "3 1" "$? $(grep -c 'frames were taken out or put in' "$WORK/err")"
	done
	tap_equal "a whole frame $how: verdict" "verdict: damaged" "$(tail -n 1 "$WORK/out")"
done

# Inside the frame that its recorder is writing the file is not cut, but not closed: seen by another look at
# it, as long as the recorder lives. Without more of it, and of the dead, it is cut as ever.
"$LAUNCHER" -q --force -o "$WORK/live" -- sh -c '
	until test "$(wc -c <"$1")" -gt 30000; do "$2" 1000 57 & sleep 0.1; done
	cp "$1" "$3.whole"
	for command in stat verify dump; do
		head -c -1000 "$3.whole" >"$3"
		{ sleep 0.05; tail -c 1000 "$3.whole" >>"$3"; } & "$4" $command "$3" 2>&1 >"$3.out" | grep -c "cut in frame"
		wait
	done
	head -c -1000 "$3.whole" >"$3"
	"$4" stat "$3" 2>&1 >"$3.out" | grep "cut in frame"
	"$4" verify "$3.whole" 2>"$3.err" | tail -n 1' sh "$WORK/live" "$PROGRAMS/blocks" "$WORK/changed" "$MEMTRACK" \
	</dev/null >"$WORK/said" 2>"$WORK/err"
tap_equal "a frame that is half written is not called cut (stat, verify, dump)" "0 0 0" "$(head -n 3 "$WORK/said" | paste -sd' ')"
tap_equal "one of which no more comes is" 1 "$(grep -c 'cut in frame' "$WORK/said")"
tap_equal "the whole file was there" "verdict: not closed" "$(tail -n 1 "$WORK/said")"
"$MEMTRACK" stat "$WORK/changed" >"$WORK/out" 2>"$WORK/err"
tap_equal "one whose recorder is gone is" "3 1" "$? $(grep -c 'cut in frame' "$WORK/err")"
: >"$WORK/changed"
"$MEMTRACK" stat "$WORK/changed" >"$WORK/out" 2>"$WORK/err"
tap_check "an empty file: refused" test $? -ge 1
# More than there is memory for: of holes, of frames that go on for ever, of one frame.
truncate -s 5G "$WORK/large"
for command in stat verify dump modules; do
	(ulimit -v 1000000; bounded 60 "$MEMTRACK" $command "$WORK/large") >"$WORK/out" 2>"$WORK/err"
	status=$?
	tap_check "5 GiB of nothing, in 1 GB of memory: $command refuses it ($status)" test $status -ge 1 -a $status -le 3
done
rm -f "$WORK/large"
if command -v zstd >/dev/null; then
	# With its size in its header, and without.
	truncate -s "$(long 300000000 4000000000)" "$WORK/zeros"
	zstd -q -1 "$WORK/zeros" -o "$WORK/sized"
	zstd -q -1 <"$WORK/zeros" >"$WORK/bomb"
	rm -f "$WORK/zeros"
	for file in sized bomb; do for command in stat dump; do
		(ulimit -v 280000; bounded 60 "$MEMTRACK" $command "$WORK/$file") >"$WORK/out" 2>"$WORK/err"
		tap_equal "a frame that unpacks to far more ($file), in little memory: $command calls it damaged" 3 $?
	done; done
fi
tap_done
