# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 50, for trees: a sidecar that is stopped for good costs a whole tree of processes --max-wait
# once: those that start beside it, one after the other, and those that were there and fill their
# buffers. The former are listed; when it goes on, so does the recording.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python

cat >"$WORK/start.sh" <<'END'
# start.sh FOLDER BLOCKS N
from=$(date +%s%N)
kill -STOP "$PPID"
i=0
while test "$i" -lt "$3"; do
	"$2" 10 4321 || exit 1
	i=$((i + 1))
done
echo $((($(date +%s%N) - from) / 1000000)) >"$1/start_ms"
kill -CONT "$PPID"
sleep 1
"$2" 7 5432
END
count=$(long 40 1000)
TRACK_OPTIONS="--max-wait=2"
track run sh "$WORK/start.sh" "$WORK" "$PROGRAMS/blocks" "$count" </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "$count processes beside a stopped sidecar: all end well" $? "$WORK/err"
took=$(cat "$WORK/start_ms")
tap_check "they wait once ($took ms)" test "$took" -ge 1500 -a "$took" -lt $((6000 + 50 * count))
tap_equal "they are listed" "$count" "$("$MEMTRACK" stat --json "$WORK/run" | "$PYTHON" -c 'import json, sys
print(sum(u["reason"] == "sidecar-stood-still" and u["path"].endswith("/blocks")
    for u in json.load(sys.stdin)["untracked"]))')"
tap_equal "and nothing of theirs was recorded" 0 "$(count_size run 4321)"
tap_equal "when the sidecar goes on a process is tracked again" 7 "$(count_size run 5432)"

# Who gives up tells the others, by a file. A program that may not write any is not killed by it.
cat >"$WORK/no_files.sh" <<'END'
kill -STOP "$PPID"
(ulimit -f 0; exec "$1" 10 4321)
status=$?
kill -CONT "$PPID"
exit "$status"
END
TRACK_OPTIONS="--max-wait=500ms"
track run sh "$WORK/no_files.sh" "$PROGRAMS/blocks" </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "a process that may write no file, beside a stopped sidecar: ends well" $? "$WORK/err"

cat >"$WORK/fill.sh" <<'END'
# fill.sh FOLDER TWICE N
i=0
while test "$i" -lt "$3"; do
	"$2" 20000 "$1/half$i" "$1/go$i" &
	i=$((i + 1))
done
i=0
while test "$i" -lt "$3"; do
	test -e "$1/half$i" && i=$((i + 1)) || sleep 0.01
done
sleep 0.2
from=$(date +%s%N)
kill -STOP "$PPID"
i=0
while test "$i" -lt "$3"; do
	>"$1/go$i"
	while ! test -e "$1/half$i.done"; do
		sleep 0.01
	done
	i=$((i + 1))
done
echo $((($(date +%s%N) - from) / 1000000)) >"$1/fill_ms"
kill -CONT "$PPID"
wait
END
cat >"$WORK/twice.sh" <<'END'
# twice.sh PAIRS HALF GO
"$TWICE" "$@" && >"$2.done"
END
TRACK_OPTIONS="--max-wait=2 --buffer-size=64K --max-buffers=4M"
export TWICE="$PROGRAMS/twice"
printf '#!/bin/sh\n' | cat - "$WORK/twice.sh" >"$WORK/twice" && chmod +x "$WORK/twice"
processes=6
track run sh "$WORK/fill.sh" "$WORK" "$WORK/twice" "$processes" </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "$processes processes fill their buffers one after the other: all end well" $? "$WORK/err"
took=$(cat "$WORK/fill_ms")
tap_check "they wait once ($took ms)" test "$took" -ge 1500 -a "$took" -lt 6000
tap_equal "nothing was lost before" "$((processes * 20000))" "$(count_size run 1111)"
lost=$(lost run)
tap_check "what was lost is counted ($lost)" test "$lost" -gt 0 -a "$lost" -le $((processes * 40000))
tap_done
