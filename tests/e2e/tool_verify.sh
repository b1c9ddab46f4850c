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
tap_check "losses: the cause is explained" grep -q '^  policy: buffers were full' out

sed 's/^map order_stats/&\nu64 corrupt_streams 2/' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" spoiled
gives "damaged buffers: ends with 1" 1 "$MEMTRACK" verify spoiled
tap_check "damaged buffers: are said" grep -q '^damaged buffers: of 2 threads' out

sed 's/^map order_stats/&\nu64 unread_streams 2/' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" unread
gives "unread threads: ends with 1" 1 "$MEMTRACK" verify unread
tap_check "unread threads: are said, for what they are" grep -q '^unread: 2 threads, for want of memory' out
tap_check "unread threads: are not called damaged" test "$(grep -c damaged out)" -eq 0

# Where a process lost records, as many frees of what is not there may follow from that; not one more,
# and only of that process and its children.
# dropped FILE LOSSES-OF-100: frees of 100 and its child 200, twice each, of blocks that are not there.
dropped()
{
	printf '%s\n' 'meta open' 'done' 'malloc 100 100 10 0x10 1' 'free 100 100 20 0x20' \
		'free 100 100 30 0x30' 'fork 200 200 40 100' 'free 200 200 50 0x40' \
		'free 300 300 55 0x60' 'malloc 200 200 60 0x10 1' 'malloc 200 200 70 0x10 1' 'frame' \
		'meta closed' 'map losses' "u64 policy $2" 'end' 'array processes' 'map -' 'u64 pid 100' \
		'map losses' "u64 policy $2" 'end' 'end' 'end' 'done' |
		"$MT_BUILDDIR/tests/e2e/mkartifact" "$1"
}
for wanted in "1: 3 contradictions, 2 frees" "2: 1 contradiction, 3 frees and 1 allocation" \
	"9: 1 contradiction, 3 frees and 1 allocation"; do
	n=${wanted%%:*}
	dropped dropped "$n"
	gives "$wanted: verify ends with 1" 1 "$MEMTRACK" verify dropped
	case $n in
	1) frees=2 allocs=0 rest=3 ;;
	*) frees=3 allocs=1 rest=1 ;;
	esac
	tap_equal "$wanted: what cannot be judged" "$frees $allocs" \
		"$(sed -n 's/^not judged: \([0-9]*\) frees* of .*/\1/p' out) $(sed -n 's/^not judged: \([0-9]*\) alloc.*/\1/p' out | grep . || echo 0)"
	tap_equal "$wanted: what contradicts" "contradictions: $rest" "$(grep ^contradictions out)"
	tap_equal "$wanted: all places are shown" 5 "$(grep -c ^frame out)"
	"$MEMTRACK" stat dropped >out
	tap_equal "$wanted: stat says the same" "$rest" "$(sed -n 's/^Contradictions *//p' out)"
	tap_check "$wanted: stat says what it did not judge" grep -q "^Not judged  *$frees frees of blocks, $allocs alloc" out
done

# Programs that ran untracked contradict nothing: whoever wants to know of them says so.
# complete TEXT STATUS ANSWER SED-SCRIPT
complete()
{
	sed -e '/^array untracked/,/^array processes/{/^array processes/!d}' \
		-e 's/^map order_stats/u64 untracked_count 0\n&/' "$SCRIPTS/tree.script" |
		sed "$4" | "$MT_BUILDDIR/tests/e2e/mkartifact" complete
	gives "$1: is clean" 0 "$MEMTRACK" verify complete
	gives "$1, --require-complete: ends with $2" "$2" "$MEMTRACK" verify --require-complete complete
	tap_equal "$1, --require-complete: is said" "complete: $3" "$(grep ^complete: out)"
}
complete "all tracked" 0 yes ''
complete "one untracked" 1 no 's/^u64 untracked_count 0/u64 untracked_count 1/'
complete "untracked not known" 1 no '/^u64 untracked_count 0/d'
complete "one unheard" 1 no 's/^u64 untracked_count 0/&\nu64 unheard 1/'
tap_check "one unheard: stat says so" sh -c '"$1" stat complete | grep -q "untracked: 1 that could not register"' sh "$MEMTRACK"

# --wait: until the file is closed.
sed '/^meta closed/,$d' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" slow
"$MEMTRACK" verify --wait slow >waited 2>&1 &
waiting=$!
sleep 0.3
tap_check "--wait: waits for a file that is not closed" kill -0 $waiting
"$MT_BUILDDIR/tests/e2e/mkartifact" closed <"$SCRIPTS/tree.script"
mv closed slow
wait $waiting
tap_equal "--wait: then verifies it" "0 verdict: clean" "$? $(tail -n 1 waited)"
gives "--wait needs a file" 2 "$MEMTRACK" verify --wait -

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
