# SPDX-License-Identifier: MIT OR Apache-2.0
# memtrack modules: what dump finds, found without reading the rest; the table; damage.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"

for name in empty every_kind frames skippable stacks streamed_frame; do
	gives "$name: ends with 0" 0 "$MEMTRACK" modules "$GOLDEN/$name.msgpack"
	grep -E '"type":"(Mapping|Fork|Exec)"' "$GOLDEN/$name.ndjson" >wanted
	same_text "$name: the lines are those of dump" wanted out
	gives "$name, --no-hints: ends with 0" 0 "$MEMTRACK" modules --no-hints "$GOLDEN/$name.msgpack"
	same_text "$name, --no-hints: the same" wanted out
	gives "$name, --table: ends with 0" 0 "$MEMTRACK" modules --table "$GOLDEN/$name.msgpack"
done
"$MEMTRACK" modules "$GOLDEN/frames.msgpack" >wanted
cat "$GOLDEN/frames.msgpack" | "$MEMTRACK" modules - >out
same_text "a pipe" wanted out

# In files of some size frames without hints are searched and not walked.
for times in 1 2 3 4 5 6 7 8 9; do
	cat "$GOLDEN/frames.msgpack" "$GOLDEN/every_kind.msgpack" "$GOLDEN/stacks.msgpack"
done >large
for name in frames every_kind stacks; do
	cat "$GOLDEN/$name.ndjson"
done | grep -E '"type":"(Mapping|Fork|Exec)"' >once
for times in 1 2 3 4 5 6 7 8 9; do
	cat once
done >wanted
tap_check "a large file: large enough" test "$(wc -c <large)" -gt 1048576
gives "a large file: ends with 0" 0 "$MEMTRACK" modules large
same_text "a large file: the lines are those of dump" wanted out

gives "cut: ends with 3" 3 "$MEMTRACK" modules "$GOLDEN/truncated_tail.msgpack"
tap_check "cut: frame and offset are said" grep -q 'cut in frame 5 at offset 141497' err
gives "damaged: ends with 3" 3 "$MEMTRACK" modules "$GOLDEN/corrupt_middle.msgpack"
tap_check "damaged: frame and offset are said" grep -q 'damaged in frame 1 at offset 27924' err
head -n 1000 "$GOLDEN/frames.ndjson" | grep -E '"type":"(Mapping|Fork|Exec)"' >wanted
same_text "damaged: what stands before is printed" wanted out
gives "--keep-going: ends with 3" 3 "$MEMTRACK" modules --keep-going "$GOLDEN/corrupt_middle.msgpack"
sed 1001,2000d "$GOLDEN/frames.ndjson" | grep -E '"type":"(Mapping|Fork|Exec)"' >wanted
same_text "--keep-going: all other frames are printed" wanted out
tap_check "--keep-going: what is missing is said" grep -q 'an unknown number of events is missing' err

# A child has what its parent had at the fork, and an exec begins anew.
"$MT_BUILDDIR/tests/e2e/mkartifact" small <<-END
	mapping 10 10 1000 0x1000 0x2000 /bin/first
	malloc 10 10 1100 0x10 32
	mapping 10 10 2000 0x5000 0x1000 /lib/one.so
	fork 11 11 3000 10
	mapping 10 10 4000 0x7000 0x1000 /lib/late.so
	frame
	exec 11 11 5000
	mapping 11 11 6000 0x1000 0x3000 /bin/second
END
cat >wanted <<-END
	process 10, from 0 ns: 3 modules
	            0 ns  0000000000001000-0000000000003000           0  /bin/first
	          1.000 us  0000000000005000-0000000000006000           0  /lib/one.so
	          3.000 us  0000000000007000-0000000000008000           0  /lib/late.so
	process 11, forked by 10, from 2.000 us: 2 modules
	       inherited  0000000000001000-0000000000003000           0  /bin/first
	       inherited  0000000000005000-0000000000006000           0  /lib/one.so
	process 11, exec at 4.000 us: 1 module
	          5.000 us  0000000000001000-0000000000004000           0  /bin/second
END
gives "--table: ends with 0" 0 "$MEMTRACK" modules --table small
sed 's/^ *//' wanted >wanted.plain
sed 's/^ *//' out >out.plain
same_text "--table: as worked out" wanted.plain out.plain
if test -w /dev/full; then
	"$MEMTRACK" modules --table small >/dev/full 2>err
	tap_equal "full disk: ends with 1" 1 $?
fi
for wrong in "--table=x" "--pid 1" ""; do
	# shellcheck disable=SC2086 # two words
	gives "wrong usage: $wrong" 2 "$MEMTRACK" modules $wrong
done
tap_done
