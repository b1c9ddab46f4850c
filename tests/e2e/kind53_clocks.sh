# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 53: one clock. Two threads on two processors hand blocks back and forth: no free comes before
# its allocation, time never runs backwards, and it is CLOCK_MONOTONIC; also where time namespaces
# make several of it.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
test "$(nproc)" -ge 2 || tap_skip_all "one processor"
now()
{
	"$PYTHON" -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))'
}
before=$(now)
counted "two threads on two processors" "$PROGRAMS/pingpong" "$(long 20000 1000000)"
after=$(now)
dump counted >"$WORK/all"
first=$(sed -n '1s/.*"timestamp":\([0-9]*\).*/\1/p' "$WORK/all")
last=$(sed -n '$s/.*"timestamp":\([0-9]*\).*/\1/p' "$WORK/all")
tap_check "stamps lie within the run" test "$before" -le "$first" -a "$first" -le "$last" -a "$last" -le "$after"
tap_equal "blocks come in the order in which they were taken" 0 \
	"$(sed -n 's/.*"type":"Malloc","size":\([0-9]*\)[,}].*/\1/p' "$WORK/all" | awk '
	$1 == 99 { going = 1; next }
	going && $1 >= 100 && $1 < 1100 { if (last && $1 != last + 1 && !(last == 1099 && $1 == 100)) bad++; last = $1 }
	END { print bad + 0 }')"
# A storm of forks whose children allocate at once: none does before its Fork.
track run "$PROGRAMS/forker" "$(long 30 500)" </dev/null 2>"$WORK/err"
tap_verdict "a storm of forks: ends well" $? "$WORK/err"
tap_equal "a storm of forks: nothing of a process stands before its Fork, and time never falls" "0 0" \
	"$(dump run | "$PYTHON" -c 'import json, sys
early = back = last = 0
there = set()
for event in map(json.loads, sys.stdin):
    early += bool(there) and event["pid"] not in there and event["type"] != "Fork"
    back += event["timestamp"] < last
    last = event["timestamp"]
    there.add(event["pid"])
print(early, back)')"

# separate TEXT COMMAND...: ends well, each block once, and each image on record as tracked, once.
separate()
{
	separate_text=$1
	shift
	rm -f "$WORK/run"
	bounded 60 "$@" >"$WORK/out" 2>"$WORK/err"
	tap_verdict "$separate_text: ends well" $? "$WORK/err"
	verified "$separate_text" run
	tap_equal "$separate_text: every block is there" "1000 500" "$(count_size run 12345) $(count_size run 4567)"
	tap_equal "$separate_text: no image is untracked, and none has two Execs" "0 4" \
		"$("$MEMTRACK" stat --json "$WORK/run" | "$PYTHON" -c 'import json, sys
print(len(json.load(sys.stdin)["untracked"] or []))') $(count_type run Exec)"
}
for ahead in 1000000 5 -5; do
	if ! unshare -T --monotonic "$ahead" true 2>/dev/null; then
		tap_skip "a clock $ahead s ahead" "no time namespaces here"
		continue
	fi
	separate "a program's clock $ahead s ahead" "$LAUNCHER" -q -o "$WORK/run" -- unshare -T --monotonic "$ahead" \
		sh -c '"$1" 1000 12345; "$1" 500 4567; true' sh "$PROGRAMS/blocks"
	separate "the whole run's clock $ahead s ahead" unshare -T --monotonic "$ahead" "$LAUNCHER" -q -o "$WORK/run" -- \
		env sh -c '"$1" 1000 12345; "$1" 500 4567; true' sh "$PROGRAMS/blocks"
done

# A clock of the user's, in LD_PRELOAD or in the program, is not ours: ahead, behind, or standing still.
cat >"$WORK/clock.c" <<'END'
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
	const char *ahead = getenv("CLOCK_AHEAD");
	int result = (int)syscall(SYS_clock_gettime, clock, now);

	if (!ahead)
		*now = (struct timespec){ .tv_sec = 1000 };
	else
		now->tv_sec += atol(ahead);
	return result;
}
END
cc=$(make_value CC)
$cc -w -fPIC -shared -o "$WORK/libclock.so" "$WORK/clock.c" &&
	$cc -w -rdynamic -fno-builtin -pthread -o "$WORK/clocked" "$E2E/blocks.c" "$WORK/clock.c" || exit 1
for ahead in 1000000 -1000000 ""; do
	separate "a clock of the user's, ${ahead:-that stands still}" env LD_PRELOAD="$WORK/libclock.so" \
		${ahead:+CLOCK_AHEAD=$ahead} "$LAUNCHER" -q -o "$WORK/run" -- env \
		sh -c '"$1" 1000 12345; "$2" 500 4567; true' sh "$PROGRAMS/blocks" "$WORK/clocked"
done
rm -f "$WORK/run"
bounded 30 env LD_PRELOAD="$WORK/libclock.so" "$LAUNCHER" -q -o "$WORK/run" -- "$PROGRAMS/sandbox" filter 10 \
	>"$WORK/out" 2>"$WORK/err"
tap_verdict "a clock that stands still, and a filter: ends well" $? "$WORK/err"
tap_done
