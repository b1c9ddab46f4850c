# SPDX-License-Identifier: MIT OR Apache-2.0
# memtrack dump: byte for byte what the golden files say, filters, damage, outputs that fail.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"

for name in empty every_kind frames skippable stacks streamed_frame; do
	gives "$name: ends with 0" 0 "$MEMTRACK" dump "$GOLDEN/$name.msgpack"
	tap_check "$name: the lines are those of the golden file" cmp out "$GOLDEN/$name.ndjson"
	tap_check "$name: nothing is said" test ! -s err
done
gives "cut: ends with 3" 3 "$MEMTRACK" dump "$GOLDEN/truncated_tail.msgpack"
tap_check "cut: what is whole is printed" cmp out "$GOLDEN/truncated_tail.ndjson"
tap_check "cut: frame and offset are said" grep -q 'cut in frame 5 at offset 141497' err
# Of a frame that was cut its whole blocks count. (Those of the golden files have one block each.)
if command -v zstd >/dev/null; then
	zstd -dcq "$GOLDEN/frames.msgpack" | zstd -q >one_frame
	head -c "$(($(wc -c <one_frame) / 2))" one_frame >half_a_frame
	gives "half a frame: ends with 3" 3 "$MEMTRACK" dump half_a_frame
	lines=$(wc -l <out)
	tap_check "half a frame: what its whole blocks hold is printed ($lines events)" test "$lines" -gt 1000 -a "$lines" -lt 5000
	head -n "$lines" "$GOLDEN/frames.ndjson" >wanted
	same_text "half a frame: from its beginning on" wanted out
fi
gives "damaged: ends with 3" 3 "$MEMTRACK" dump "$GOLDEN/corrupt_middle.msgpack"
tap_check "damaged: frame and offset are said" grep -q 'damaged in frame 1 at offset 27924' err
head -n 1000 "$GOLDEN/frames.ndjson" >wanted
tap_check "damaged: what stands before is printed" cmp out wanted
tap_check "damaged: --keep-going is named" grep -q -- --keep-going err
gives "--keep-going: ends with 3" 3 "$MEMTRACK" dump --keep-going "$GOLDEN/corrupt_middle.msgpack"
tap_check "--keep-going: frame and offset are said" grep -q 'damaged in frame 1 at offset 27924' err
tap_check "--keep-going: what is missing is said" grep -q 'an unknown number of events is missing' err
sed 1001,2000d "$GOLDEN/frames.ndjson" >wanted
tap_check "--keep-going: all other frames are printed" cmp out wanted
"$MEMTRACK" dump - <"$GOLDEN/frames.msgpack" >out
tap_check "standard input" cmp out "$GOLDEN/frames.ndjson"
cat "$GOLDEN/frames.msgpack" | "$MEMTRACK" dump - >out
tap_check "a pipe" cmp out "$GOLDEN/frames.ndjson"

# filtered TEXT PATTERN OPTION...: what the filter gives is what grep gives.
filtered()
{
	text=$1
	pattern=$2
	shift 2
	"$MEMTRACK" dump "$@" "$GOLDEN/frames.msgpack" >out
	grep -E "$pattern" "$GOLDEN/frames.ndjson" >wanted
	test -s wanted || tap_fail "$text: the golden file has such events"
	same_text "$text" wanted out
}
filtered "--pid" '"pid":501,' --pid 501
filtered "--pid with a list" '"pid":50[12],' --pid 501,502
filtered "--pid twice" '"pid":50[12],' --pid 501 --pid=502
filtered "--tid" '"tid":502,' --tid 502
filtered "--type" '"type":"Free"' --type Free
filtered "--type, a list in lower case" '"type":"(Fork|Exec|Exit)"' --type fork,exec --type exit
filtered "pid, tid and type together" '"pid":500,"tid":501,.*"type":"Malloc"' --pid 500 --tid 501 \
	--type Malloc

# The bounds of time take in what stands on them.
first=5000000877
last=$(sed -n 3000p "$GOLDEN/frames.ndjson" | sed 's/.*"timestamp":\([0-9]*\).*/\1/')
head -n 3000 "$GOLDEN/frames.ndjson" >wanted
"$MEMTRACK" dump --to "$last" "$GOLDEN/frames.msgpack" >out
same_text "--to" wanted out
"$MEMTRACK" dump --to "$((last - first))ns" "$GOLDEN/frames.msgpack" >out
same_text "--to after the first event" wanted out
sed -n '3000,$p' "$GOLDEN/frames.ndjson" >wanted
"$MEMTRACK" dump --from "$last" "$GOLDEN/frames.msgpack" >out
same_text "--from" wanted out
head -n 1 "$GOLDEN/frames.ndjson" >wanted
"$MEMTRACK" dump --to 0s "$GOLDEN/frames.msgpack" >out
same_text "--to 0s is the first event" wanted out
"$MEMTRACK" dump --from 1.0005ms --to 1000.9us "$GOLDEN/frames.msgpack" >out
"$MEMTRACK" dump --from $((first + 1000500)) --to $((first + 1000900)) "$GOLDEN/frames.msgpack" >wanted
same_text "units" wanted out

# By hints whole frames are passed by; one that has an event on the bound is not.
# (Of repair, not of recompress, which makes one frame of all.)
"$MEMTRACK" repair "$GOLDEN/frames.msgpack" hinted >out
tap_check "frames of a thousand events each get hints" grep -q '6000 events in 6 frames' out
# time_of LINE: of the event in that line; a frame has a thousand.
time_of()
{
	sed -n "$1p" "$GOLDEN/frames.ndjson" | sed 's/.*"timestamp":\([0-9]*\).*/\1/'
}
head -n 1001 "$GOLDEN/frames.ndjson" >wanted
"$MEMTRACK" dump --to "$(time_of 1001)" hinted >out
same_text "--to the first event of a frame with a hint" wanted out
sed -n '1000,$p' "$GOLDEN/frames.ndjson" >wanted
"$MEMTRACK" dump --from "$(time_of 1000)" hinted >out
same_text "--from the last event of a frame with a hint" wanted out

for wrong in "--pid x" "--pid 1,,2" "--pid 99999999999" "--tid 1,x" "--type Foo" "--from x" "--to 1.5" \
	"--to 5h" "--from 1." "--from -1" "--to 99999999999999999999" "--foo" "--pid"; do
	# shellcheck disable=SC2086 # two words
	gives "wrong usage: $wrong" 2 "$MEMTRACK" dump $wrong "$GOLDEN/frames.msgpack"
	tap_check "wrong usage: $wrong: is said" test -s err -a ! -s out
done

if test -w /dev/full; then
	"$MEMTRACK" dump "$GOLDEN/frames.msgpack" >/dev/full 2>err
	tap_equal "full disk: ends with 1" 1 $?
	tap_check "full disk: is said" grep -q 'cannot write standard output: No space' err
fi
"$MEMTRACK" dump "$GOLDEN/frames.msgpack" 2>err | head -n 1 >out
tap_equal "a reader that goes away: one line" 1 "$(wc -l <out)"
tap_check "a reader that goes away: nothing is said" test ! -s err
"$MEMTRACK" dump "$GOLDEN/frames.msgpack" >&- 2>err
tap_equal "closed output: ends with 1" 1 $?
gives "no such file: ends with 1" 1 "$MEMTRACK" dump nothing-here
tap_check "no such file: is said" grep -q 'nothing-here.*No such file' err
echo '{"not": "an artifact"}' >other
gives "another kind of file: ends with 1" 1 "$MEMTRACK" dump other
tap_check "another kind of file: is said" grep -q other err
gives "a folder: ends with 1" 1 "$MEMTRACK" dump .

# An event of a type that nobody knows: {"pid":1,"tid":1,"timestamp":5,"addr":0,"type":"Zap","x":[1]}
make_artifact unknown
gives "unknown type: ends with 0" 0 "$MEMTRACK" dump unknown
tap_equal "unknown type: the others are printed" 2 "$(wc -l <out)"
tap_check "unknown type: is counted and said" grep -q "1 event of an unknown type (the first: 'Zap') passed over" err
tap_done
