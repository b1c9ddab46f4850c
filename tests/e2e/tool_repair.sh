# SPDX-License-Identifier: MIT OR Apache-2.0
# memtrack repair and recompress: what is whole is kept, byte for byte, and the result is clean.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"

# repaired NAME IN WANTED-LINES: repairs IN into the file NAME, which has to hold these events.
repaired()
{
	rm -f "$1"
	gives "$1: repair ends with 0" 0 "$MEMTRACK" repair "$2" "$1"
	cp err "$1.err"
	gives "$1: the result is whole" 0 "$MEMTRACK" dump "$1"
	tap_check "$1: nothing is said of it" test ! -s err
	same_text "$1: its events are those that were whole" "$3" out
	gives "$1: module events" 0 "$MEMTRACK" modules "$1"
	grep -E '"type":"(Mapping|Fork|Exec)"' "$3" >wanted.modules
	same_text "$1: its hints are right" wanted.modules out
}

for name in empty every_kind frames skippable stacks streamed_frame; do
	repaired "$name.whole" "$GOLDEN/$name.msgpack" "$GOLDEN/$name.ndjson"
	tap_check "$name: that it was whole is said" test ! -s "$name.whole.err"
done
repaired cut "$GOLDEN/truncated_tail.msgpack" "$GOLDEN/truncated_tail.ndjson"
tap_check "cut: where is said" grep -q 'cut in frame 5 at offset 141497' cut.err
sed 1001,2000d "$GOLDEN/frames.ndjson" >wanted
repaired damaged "$GOLDEN/corrupt_middle.msgpack" wanted
tap_check "damaged: where is said" grep -q 'damaged in frame 1 at offset 27924' damaged.err
"$MEMTRACK" stat --json damaged >out
tap_equal "damaged: frames keep their numbers" 1 "$(grep -c '"frames": 6' out)"
tap_check "damaged: the note is there" grep -aq 'repaired' damaged

cp damaged damaged_again
printf '\377\377\377\377\377\377' | dd of=damaged_again bs=1 seek=$(($(wc -c <damaged) - 2000)) conv=notrunc 2>/dev/null
"$MEMTRACK" dump damaged_again >out 2>err
tap_check "damaged: the last frame is the fifth still" grep -q 'damaged in frame 5 at' err
if command -v zstd >/dev/null; then
	zstd -dcq "$GOLDEN/frames.msgpack" | zstd -q >one_frame
	head -c "$(($(wc -c <one_frame) / 2))" one_frame >half_a_frame
	"$MEMTRACK" dump half_a_frame >wanted 2>/dev/null
	tap_check "half a frame: has events" test -s wanted
	repaired half "half_a_frame" wanted
fi

# What could not be saved is missing for good: neither verify nor stat takes the rest for the whole.
for name in cut damaged; do
	"$MEMTRACK" verify "$name" >out
	tap_check "$name, repaired: verify says why" grep -q '^repaired: what was cut, damaged or never written' out
	"$MEMTRACK" stat "$name" >out
	tap_check "$name, repaired: stat says so" grep -q 'REPAIRED: ' out
done
"$MEMTRACK" stat frames.whole >out
tap_check "it was whole: stat says nothing of repair" test "$(grep -c REPAIRED out)" -eq 0
"$MEMTRACK" verify --json cut >out
tap_check "cut, repaired: verify --json says why" grep -q '"repaired": true' out

# A recording whose recorder was killed, cut at many places: metadata stays, and it is closed.
make_artifact tree
sed '/^meta closed/,$d' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" unclosed
"$MEMTRACK" dump unclosed >unclosed.lines 2>/dev/null
repaired closed unclosed unclosed.lines
"$MEMTRACK" stat closed >out 2>err
tap_check "not closed: it is now" test ! -s err
# Behind one another: what the one that was not closed holds is in nobody's count.
"$MT_BUILDDIR/tests/e2e/mkartifact" whole <"$SCRIPTS/tree.script"
cat whole unclosed >whole_unclosed
cat unclosed whole >unclosed_whole
for both in whole_unclosed unclosed_whole; do
	"$MEMTRACK" verify "$both" >out 2>err
	tap_check "$both: no frame is missed" test "$?" -ne 3 -a "$(grep -c 'taken out or put in' err)" -eq 0
done
gives "not closed, repaired: contradicts nothing, and is not clean" 1 "$MEMTRACK" verify closed
tap_equal "not closed, repaired: verify says so" "contradictions: none, verdict: not clean" \
	"$(grep -E '^(contradictions|verdict):' out | paste -sd, | sed 's/,/, /')"
size=$(wc -c <tree)
bad=
at=21
while test "$at" -lt "$size"; do
	head -c "$at" tree >piece
	"$MEMTRACK" dump piece >piece.lines 2>/dev/null
	"$MEMTRACK" repair --force piece fixed >/dev/null 2>&1 || bad="$bad repair:$at"
	"$MEMTRACK" dump fixed >fixed.lines 2>err || bad="$bad dump:$at"
	test ! -s err || bad="$bad said:$at"
	cmp -s piece.lines fixed.lines || bad="$bad lines:$at"
	at=$((at + 13))
done
tap_equal "cut anywhere: repair gives what dump gives, whole" "" "$bad"

# Damage under a hint: how much is missing is known.
"$MEMTRACK" recompress --keep-frames "$GOLDEN/frames.msgpack" hinted >out
cp hinted hurt
printf '\377\377\377\377\377\377' | dd of=hurt bs=1 seek=200 conv=notrunc 2>/dev/null
gives "hinted and damaged: dump ends with 3" 3 "$MEMTRACK" dump --keep-going hurt
tap_check "hinted and damaged: what is missing is counted" grep -q ': 1000 events are missing' err
sed 1,1000d "$GOLDEN/frames.ndjson" >wanted
same_text "hinted and damaged: the rest is printed" wanted out
repaired hurt.repaired hurt wanted

# recompress: the same content, hints, and figures.
for name in empty every_kind frames skippable stacks streamed_frame; do
	for codec in fused zstd; do
		gives "$name, $codec: ends with 0" 0 "$MEMTRACK" recompress --force --codec "$codec" \
			"$GOLDEN/$name.msgpack" again
		tap_check "$name, $codec: sizes are said" grep -q '^after:' out
		gives "$name, $codec: is whole" 0 "$MEMTRACK" dump again
		same_text "$name, $codec: the same events" "$GOLDEN/$name.ndjson" out
		if command -v zstd >/dev/null; then
			zstd -dcq "$GOLDEN/$name.msgpack" >wanted.raw
			zstd -dcq again >got.raw
			tap_check "$name, $codec: the same content" cmp wanted.raw got.raw
		fi
	done
done
# What is not events stays too, in its place.
"$MEMTRACK" recompress --force tree again >out
for name in tree again; do
	"$MEMTRACK" stat "$name" | tail -n +2 >"$name.stat"
done
same_text "recompressed: stat says the same of the run" tree.stat again.stat
"$MEMTRACK" recompress --force "$GOLDEN/skippable.msgpack" again >out
head -c 13 "$GOLDEN/skippable.msgpack" >wanted
head -c 13 again >got
tap_check "recompressed: another's skippable frame stays" cmp wanted got
gives "a level" 0 "$MEMTRACK" recompress --force --codec zstd --level 3 "$GOLDEN/frames.msgpack" again
cat "$GOLDEN/frames.msgpack" | "$MEMTRACK" recompress --keep-frames - piped >out
tap_check "from a pipe" cmp hinted piped
gives "cut: recompress ends with 3" 3 "$MEMTRACK" recompress "$GOLDEN/truncated_tail.msgpack" none
tap_check "cut: nothing is left behind" test ! -e none
gives "damaged: recompress ends with 3" 3 "$MEMTRACK" recompress "$GOLDEN/corrupt_middle.msgpack" none
tap_equal "damaged: recompress names repair, and no option that it has not" "1 0" \
	"$(grep -c 'memtrack repair' err) $(grep -c keep-going err)"
for level in 0 23 x ""; do
	gives "a level that is none: '$level'" 2 "$MEMTRACK" recompress --force --level "$level" "$GOLDEN/frames.msgpack" none
done
tap_check "damaged: nothing is left behind" test ! -e none

# An event that our serializer writes otherwise ({"tid":1,"pid":1,"timestamp":5,"addr":0,"type":"Exec"}).
echo "raw 85a374696401a370696401a974696d657374616d7005a46164647200a474797065a445786563" |
	"$MT_BUILDDIR/tests/e2e/mkartifact" foreign
gives "foreign: ends with 0" 0 "$MEMTRACK" recompress foreign foreign.ours
tap_check "foreign: is said" grep -q 'otherwise' out
if command -v zstd >/dev/null; then
	zstd -dcq foreign >wanted.raw
	zstd -dcq foreign.ours >got.raw
	tap_check "foreign: the same content" cmp wanted.raw got.raw
fi
make_artifact unknown
gives "unknown type: repair" 0 "$MEMTRACK" repair unknown unknown.whole
gives "unknown type: recompress" 0 "$MEMTRACK" recompress unknown unknown.ours
"$MEMTRACK" dump unknown >wanted 2>/dev/null
for name in unknown.whole unknown.ours; do
	gives "$name: is whole" 0 "$MEMTRACK" dump "$name"
	same_text "$name: the same events" wanted out
	tap_check "$name: the unknown one is still there" grep -q "1 event of an unknown type" err
done

for command in repair recompress; do
	gives "$command: an existing file is an error" 1 "$MEMTRACK" "$command" tree hinted
	tap_check "$command: --force is named" grep -q -- --force err
	cp tree same
	gives "$command: the input is never written" 1 "$MEMTRACK" "$command" --force same ./same
	tap_check "$command: it is as it was" cmp tree same
	gives "$command: one file is wrong usage" 2 "$MEMTRACK" "$command" tree
	gives "$command: three files are wrong usage" 2 "$MEMTRACK" "$command" a b c
	gives "$command: unknown option" 2 "$MEMTRACK" "$command" --frobnicate a b
	gives "$command: no such file" 1 "$MEMTRACK" "$command" nothing-here none
	gives "$command: no such folder" 1 "$MEMTRACK" "$command" tree nothing-here/none
	echo text >other
	gives "$command: another kind of file" 1 "$MEMTRACK" "$command" other none
	tap_check "$command: nothing is left behind" test ! -e none
done
for wrong in "--codec gzip" "--level x" "--level 100" "--level"; do
	# shellcheck disable=SC2086 # two words
	gives "wrong usage: $wrong" 2 "$MEMTRACK" recompress $wrong tree none
done
if test -w /dev/full; then
	gives "full disk" 1 "$MEMTRACK" recompress --force tree /dev/full
	tap_check "full disk: is said" grep -q 'No space' err
	tap_check "full disk: the device is still there" test -c /dev/full
fi
tap_done
