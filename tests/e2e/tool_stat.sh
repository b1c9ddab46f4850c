# SPDX-License-Identifier: MIT OR Apache-2.0
# memtrack stat: its figures for a tree of processes, worked out by hand; files of others; --wait.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"

# What zstd decides stays out: sizes and offsets.
plain()
{
	sed -e 's/[0-9,]* bytes\( ([0-9.]* KiB)\)\{0,1\}, \([0-9]* frames\)/\2/' out
}
for name in tree bad; do
	make_artifact "$name"
	gives "$name: ends with 0" 0 "$MEMTRACK" stat "$name"
	plain >got
	same_text "$name: the table is as worked out" "$SCRIPTS/$name.stat" got
	gives "$name --json: ends with 0" 0 "$MEMTRACK" stat --json "$name"
	sed '/^    "name": /{n;d;}' out >got
	same_text "$name --json: is as worked out" "$SCRIPTS/$name.json" got
	tap_check "$name: nothing is said" test ! -s err
done

# A file whose recorder has not closed it.
sed '/^meta closed/,$d' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" open
gives "open: ends with 0" 0 "$MEMTRACK" stat open
tap_check "open: is said" grep -q 'open: not closed: it is still being written' err
tap_check "open: losses are not known" grep -q '^Losses *not known' out
tap_check "open: untracked images are not known" grep -q 'untracked: not known' out
tap_equal "open: --json says so" '"state": "open",' "$("$MEMTRACK" stat --json open 2>err |
	grep -o '"state": .*')"

# What runs on when recording ends is not recorded further.
sed 's/^map losses/array alive\nu64 - 7\nu64 - 9\nend\n&/' "$SCRIPTS/tree.script" | "$MT_BUILDDIR/tests/e2e/mkartifact" alive
"$MEMTRACK" stat alive >out
tap_check "alive: processes that outlived the recording are said" grep -q 'still running when recording ended: 2 processes$' out

# An image that had no time to load the library is none that ran untracked: the run is complete.
sed -e '/^array untracked/,/^array processes/s/^text reason .*/text reason recording-ended-before-loading/' \
	-e 's/^map order_stats/u64 untracked_count 0\nu64 not_loaded 1\n&/' "$SCRIPTS/tree.script" |
	"$MT_BUILDDIR/tests/e2e/mkartifact" starting
"$MEMTRACK" stat starting >out 2>err
tap_equal "no time to load: is not called untracked" "Images          3 tracked, 0 untracked, 1 with no time to load the library
                not loaded: pid 250 /opt/static (recording-ended-before-loading)" "$(grep -A1 ^Images out)"
gives "no time to load: is complete" 0 "$MEMTRACK" verify --require-complete starting

# --wait ends when the file is closed, not before.
bounded 0.5 "$MEMTRACK" stat --wait open >out 2>err
tap_equal "--wait: still waits while the file is open" 124 $?
"$MEMTRACK" stat --wait open >out 2>err &
waiter=$!
make_artifact tree
mv tree open
wait "$waiter"
tap_equal "--wait: ends with 0 once the file is closed" 0 $?
tap_check "--wait: reads what was written meanwhile" grep -q '^Losses *none' out
gives "--wait: a closed file is not waited for" 0 "$MEMTRACK" stat --wait open
gives "--wait: nor is a file of others" 0 "$MEMTRACK" stat --wait "$GOLDEN/frames.msgpack"
sed -e 's/^u64 root_pid.*/u64 recorder_pid 4194999/' -e '/^meta closed/,$d' "$SCRIPTS/tree.script" |
	"$MT_BUILDDIR/tests/e2e/mkartifact" orphan
gives "--wait: nor is one whose recorder is gone" 0 "$MEMTRACK" stat --wait orphan

for file in "$GOLDEN"/*.msgpack; do
	name=$(basename "$file" .msgpack)
	status=0
	case $name in truncated_tail | corrupt_middle) status=3 ;; esac
	gives "golden $name: ends with $status" "$status" "$MEMTRACK" stat "$file"
	gives "golden $name --json: ends with $status" "$status" "$MEMTRACK" stat --json "$file"
	if command -v "$PYTHON" >/dev/null; then
		tap_check "golden $name --json: is JSON" "$PYTHON" -m json.tool out /dev/null
	fi
done
gives "cut: the table says so" 3 "$MEMTRACK" stat "$GOLDEN/truncated_tail.msgpack"
tap_check "cut: the table says so" grep -q 'CUT: these figures' out
gives "full disk: ends with 1" 1 sh -c '"$1" stat "$2" >/dev/full' sh "$MEMTRACK" "$GOLDEN/frames.msgpack"
tap_done
