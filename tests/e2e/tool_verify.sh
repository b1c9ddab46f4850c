# SPDX-License-Identifier: MIT OR Apache-2.0
# memtrack verify: every kind of contradiction is found at its place, and nothing where all is well.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"

make_artifact tree
gives "tree: is clean" 0 "$MEMTRACK" verify tree
same_text "tree: the summary" "$SCRIPTS/tree.verify" out
make_artifact bad
gives "bad: ends with 1" 1 "$MEMTRACK" verify bad
same_text "bad: every place is found" "$SCRIPTS/bad.verify" out
gives "bad --json: ends with 1" 1 "$MEMTRACK" verify --json bad
same_text "bad --json: every place is found" "$SCRIPTS/bad.verify.json" out
gives "--limit: ends with 1" 1 "$MEMTRACK" verify --limit 2 bad
tap_equal "--limit: two places" 2 "$(grep -c '^frame ' out)"
tap_check "--limit: the others are counted" grep -q '^\.\.\. and 9 more places' out
gives "--limit 0: ends with 1" 1 "$MEMTRACK" verify --limit=0 bad
tap_equal "--limit 0: no place" 0 "$(grep -c '^frame ' out)"

# Losses alone are not clean either.
sed 's/^map losses/&\nu64 policy 3/' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" lossy
gives "losses: ends with 1" 1 "$MEMTRACK" verify lossy
tap_check "losses: are said by cause" grep -q '^losses: 3 records: policy 3' out

sed 's/^map order_stats/&\nu64 corrupt_streams 2/' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" spoiled
gives "damaged buffers: ends with 1" 1 "$MEMTRACK" verify spoiled
tap_check "damaged buffers: are said" grep -q '^damaged buffers: of 2 threads' out

# A file that is cut between frames has no contradiction as far as it goes, but who knows its losses?
sed '/^meta closed/,$d' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" open
gives "not closed: ends with 1" 1 "$MEMTRACK" verify open
tap_equal "not closed: is no clean one" "verdict: not closed" "$(tail -n 1 out)"
tap_check "not closed: is said" grep -q 'not closed' err
gives "not closed --json: ends with 1" 1 "$MEMTRACK" verify --json open
tap_check "not closed --json: the verdict" grep -q '"verdict": "not closed"' out

# Inside a frame it is damaged.
gives "cut: ends with 3" 3 "$MEMTRACK" verify "$GOLDEN/truncated_tail.msgpack"
gives "damaged: ends with 3" 3 "$MEMTRACK" verify "$GOLDEN/corrupt_middle.msgpack"
tap_check "damaged: what stands behind is not judged" grep -q '1,000 replayed, .*4,000 behind the damage' out
tap_check "damaged: frame and offset are said" grep -q 'damaged in frame 1 at offset 27924' err
for wrong in "--limit" "--limit x" "--limit -1" "--limit 99999999999" "--all" "tree"; do
	# shellcheck disable=SC2086 # two words
	gives "wrong usage: $wrong" 2 "$MEMTRACK" verify $wrong bad
done
gives "no such file: ends with 1" 1 "$MEMTRACK" verify nothing-here
tap_done
