# SPDX-License-Identifier: MIT OR Apache-2.0
# Of one thing memtrack speaks as of one: "1 frame", not "1 frames".
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"

things='allocations|blocks|bytes|events|frames|frees|images|modules|places|processes|reallocs|records|threads|times'

# singular TEXT WORDS: what was said says these words, and of no one thing as of several.
singular()
{
	cat out err >said
	tap_check "$1: '$2'" grep -q "$2" said
	grep -nE "(^|[^0-9.,])1 ([a-z]+ )*($things)\\b" said >wrong
	tap_equal "$1: one is not several" "" "$(cat wrong)"
}

make_artifact one
make_artifact unknown
gives "stat" 0 "$MEMTRACK" stat one
singular "stat" ', 1 frame,'
singular "stat" '^Processes *1, 1 thread$'
singular "stat" '^Live at the end 1 byte in 1 block$'
singular "stat" '^Losses *1 record:'
singular "stat" 'Order *1 time raised .* 1 event held .* 1 realloc written'
gives "stat of an unknown type" 0 "$MEMTRACK" stat unknown
singular "stat of an unknown type" '1 event of a type that'
singular "stat of an unknown type" '1 event of an unknown type'
gives "verify" 1 "$MEMTRACK" verify one
singular "verify" 'where 1 byte is live'
singular "verify" 'of 1 process$'
singular "verify" '^unread: 1 thread, '
singular "verify" '^losses: 1 record: policy 1$'
gives "modules" 0 "$MEMTRACK" modules --table one
singular "modules" ': 1 module$'

# A file of one event, and of one that we would write otherwise.
echo "exec 1 1 5" | "$MT_BUILDDIR/tests/e2e/mkartifact" single
gives "recompress" 0 "$MEMTRACK" recompress single single.ours
singular "recompress" '1 in 1 frame, before in 1$'
gives "repair" 0 "$MEMTRACK" repair single single.whole
singular "repair" '1 event in 1 frame'
echo "raw 85a374696401a370696401a974696d657374616d7005a46164647200a474797065a445786563" |
	"$MT_BUILDDIR/tests/e2e/mkartifact" foreign
gives "recompress of others'" 0 "$MEMTRACK" recompress foreign foreign.ours
singular "recompress of others'" '^1 frame holds'

# Damaged frames: one more than are named, and one event that is missing by its hint.
i=0
while test "$i" -lt 21; do
	echo "raw c1"
	i=$((i + 1))
done >script
echo "exec 1 1 5" >>script
"$MT_BUILDDIR/tests/e2e/mkartifact" damaged <script
gives "damaged frames" 3 "$MEMTRACK" dump --keep-going damaged
singular "damaged frames" ': 1 more damaged frame$'
printf 'exec 1 1 5\nframe\nexec 1 1 6\n' | "$MT_BUILDDIR/tests/e2e/mkartifact" two
gives "repair adds hints" 0 "$MEMTRACK" repair two hurt
printf '\377\377\377\377\377\377' | dd of=hurt bs=1 seek=100 conv=notrunc 2>/dev/null
gives "a missing event" 3 "$MEMTRACK" dump --keep-going hurt
singular "a missing event" ': 1 event is missing$'
tap_done
