# SPDX-License-Identifier: MIT OR Apache-2.0
# memtrack recompress joins small frames: the same content in the same order, in frames of the usual
# size, and what metadata says of a frame goes with its events.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"

frames()
{
	"$MEMTRACK" stat --json "$1" | sed -n 's/.*"frames": *\([0-9]*\).*/\1/p' | head -n 1
}

# joined NAME FRAMES: the file NAME, recompressed to NAME.joined, has so many frames and the same events.
joined()
{
	rm -f "$1.joined"
	gives "$1: ends with 0" 0 "$MEMTRACK" recompress "$1" "$1.joined"
	tap_equal "$1: frames" "$2" "$(frames "$1.joined")"
	"$MEMTRACK" dump "$1" >wanted
	gives "$1: is whole, its hints right" 0 "$MEMTRACK" dump "$1.joined"
	tap_check "$1: nothing is said of it" test ! -s err
	tap_check "$1: the same events in the same order" cmp wanted out
	if command -v zstd >/dev/null; then
		zstd -dcq "$1" >wanted.raw
		zstd -dcq "$1.joined" >got.raw
		tap_check "$1: the same content" cmp wanted.raw got.raw
	fi
}

for name in frames every_kind stacks empty streamed_frame; do
	cp "$GOLDEN/$name.msgpack" "$name"
	joined "$name" 1
done
"$MEMTRACK" recompress frames frames.joined --force >out
tap_check "how many frames there were is said" grep -q '^events: *6000 in 1 frame, before in 6$' out
gives "--keep-frames" 0 "$MEMTRACK" recompress --force --keep-frames frames kept
tap_equal "--keep-frames: as many as before" 6 "$(frames kept)"
cat frames | "$MEMTRACK" recompress - piped >out
tap_check "from a pipe: the same" cmp frames.joined piped

# 3,000 frames of 50 events: 1,310 of them fit into one of 65,536.
awk 'BEGIN {
	for (i = 0; i < 150000; i++) {
		print (i % 2 ? "free 1 2 " : "malloc 1 2 ") i * 10, 4096 + int(i / 2) % 7 * 64, i % 2 ? "" : i % 300
		if (i % 50 == 49)
			print "frame"
	}
}' >script
"$MT_BUILDDIR/tests/e2e/mkartifact" tiny <script
tap_equal "tiny frames before" 3000 "$(frames tiny)"
joined tiny 3

# What is not ours between frames stays between the same events; a frame as we do not write it stays alone.
head -n 2 script | "$MT_BUILDDIR/tests/e2e/mkartifact" one
printf '\120\052\115\030\004\000\000\000note' >note
cat one one note one one >between
joined between 2
"$MEMTRACK" recompress --force one single >out
size=$(wc -c <between.joined)
tap_equal "between: the note is in the middle" "$(((size - 12) / 2 + 8)):note" "$(grep -abo note between.joined)"
echo "raw 85a374696401a370696401a974696d657374616d7005a46164647200a474797065a445786563" |
	"$MT_BUILDDIR/tests/e2e/mkartifact" foreign
cat one one foreign one one >mixed
joined mixed 3
make_artifact unknown
cat one unknown one >strange
"$MEMTRACK" dump strange >wanted 2>/dev/null
gives "unknown types: ends with 0" 0 "$MEMTRACK" recompress strange strange.joined
gives "unknown types: is whole" 0 "$MEMTRACK" dump strange.joined
tap_check "unknown types: the same events" cmp wanted out

# The events that the recorder flagged, wherever the list of them stands.
make_artifact bad
joined bad 1
"$MEMTRACK" verify bad >before
"$MEMTRACK" verify bad.joined >after
tap_check "flagged before" grep -q '^frame 1, event 0: .*flagged by the recorder: unknown_free' before
tap_check "flagged in its new place" grep -q '^frame 0, event 5: .*flagged by the recorder: unknown_free' after
# (A stack that was defined in a later frame is in the same one now, where it counts.)
for name in before after; do
	sed -n 's/^frame [0-9]*, event [0-9]*//; s/by frame [0-9]*, event [0-9]*//; /^: stack /d; /^: /p' "$name" >"$name.places"
done
same_text "all else is the same" before.places after.places
{
	sed -n '/^meta anomalies/,/^done/p' "$SCRIPTS/bad.script"
	sed '/^meta anomalies/,/^done/d' "$SCRIPTS/bad.script"
} | "$MT_BUILDDIR/tests/e2e/mkartifact" early
joined early 1
"$MEMTRACK" verify early.joined >after
tap_check "a list in front of its events: the same" grep -q '^frame 0, event 5: .*flagged by the recorder: unknown_free' after
"$MEMTRACK" stat early.joined >out
tap_check "and the file ends with its closing metadata" grep -q ', closed$' out
tap_done
