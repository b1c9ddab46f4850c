# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 17: an LD_PRELOAD of the user's is kept, behind ours, and works, also one that a script puts
# in front; the tool may be called by a relative path, from another folder, and the program may change
# its folder before it execs. (That it may be installed under a path that LD_PRELOAD cannot name is
# shown by run_launcher.sh.)
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
truncate -s "$COUNTER_BYTES" "$WORK/counts"
track run env >"$WORK/out" 2>"$WORK/err"
ours=$(sed -n 's/^LD_PRELOAD=//p' "$WORK/out")
tap_check "LD_PRELOAD is an absolute path" test "${ours#/}" != "$ours"
rm -f "$WORK/run"
LD_PRELOAD=$COUNTER "$LAUNCHER" -q -o "$WORK/run" -- env >"$WORK/out" 2>"$WORK/err"
tap_equal "the user's LD_PRELOAD stands behind ours" "$ours:$COUNTER" "$(sed -n 's/^LD_PRELOAD=//p' "$WORK/out")"
track run sh -c 'LD_PRELOAD=$1:$LD_PRELOAD:$1 exec env' sh "$COUNTER" >"$WORK/out" 2>"$WORK/err"
tap_equal "what a script puts before ours comes behind it" "$ours:$COUNTER:$COUNTER" \
	"$(sed -n 's/^LD_PRELOAD=//p' "$WORK/out")"
# Of several LD_PRELOAD the loader takes the last.
cat >"$WORK/twice.c" <<'END'
#include <unistd.h>
int main(int argc, char **argv)
{
	char *environment[] = { argv[1], argv[2], NULL };

	return argc < 4 || execve(argv[3], argv + 3, environment);
}
END
$(make_value CC) -o "$WORK/twice" "$WORK/twice.c" || exit 1
track run "$WORK/twice" LD_PRELOAD=/no/such/first.so "LD_PRELOAD=$COUNTER" "$(command -v env)" >"$WORK/out" 2>"$WORK/err"
tap_equal "of two LD_PRELOAD the one that counts is kept" "$ours:$COUNTER" "$(sed -n 's/^LD_PRELOAD=//p' "$WORK/out")"
rm -f "$WORK/run"
"$WORK/twice" LD_PRELOAD=/no/such/first.so "LD_PRELOAD=$COUNTER" "$LAUNCHER" -q -o "$WORK/run" -- \
	"$(command -v env)" >"$WORK/out" 2>"$WORK/err"
tap_equal "of two LD_PRELOAD before us too" "$ours:$COUNTER" "$(sed -n 's/^LD_PRELOAD=//p' "$WORK/out")"
cd "${LAUNCHER%/*}" || exit 1
rm -f "$WORK/run"
"./${LAUNCHER##*/}" -q -o "$WORK/run" -- sh -c 'cd /; "$1" 1000 12345' sh "$PROGRAMS/blocks" 2>"$WORK/err"
tap_equal "by a relative path, with a change of folder" "0 1000" "$? $(count_size run 12345)"
# An allocator that the user preloads is the program's still: its own entries answer.
cat >"$WORK/asks.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	int (*ask)(const char *, void *, size_t *, void *, size_t) = dlsym(RTLD_DEFAULT, "mallctl");
	const char *version = NULL;
	unsigned long long before = 0, after = 0;
	size_t size = sizeof(version), bytes = sizeof(before);

	if (!ask || ask("version", &version, &size, NULL, 0) || !version)
		return 1;
	if (ask("thread.allocated", &before, &bytes, NULL, 0) || !malloc(123456) ||
	    ask("thread.allocated", &after, &bytes, NULL, 0))
		return 2;
	return after - before < 123456 ? 3 : 0;
}
END
$(make_value CC) -D_GNU_SOURCE -fno-builtin -o "$WORK/asks" "$WORK/asks.c" -ldl || exit 1
jemalloc=$(find_library libjemalloc.so.2)
if test -n "$jemalloc"; then
	for preload in "$jemalloc" "$COUNTER:$jemalloc" "$COUNTER $jemalloc"; do
		rm -f "$WORK/run"
		LD_PRELOAD=$preload "$LAUNCHER" -q -o "$WORK/run" -- "$WORK/asks" 2>"$WORK/err"
		tap_equal "jemalloc in LD_PRELOAD serves the program, and we record it" "0 1" "$? $(count_size run 123456)"
		verified "jemalloc in LD_PRELOAD" run
	done
	track run sh -c 'LD_PRELOAD=$2:$LD_PRELOAD exec "$1"' sh "$WORK/asks" "$jemalloc" 2>"$WORK/err"
	tap_equal "jemalloc put before us by a script serves the program, and we record it" "0 1" \
		"$? $(count_size run 123456)"
	verified "jemalloc put before us by a script" run
else
	tap_skip "jemalloc in LD_PRELOAD" "libjemalloc.so.2 is not installed (package libjemalloc2)"
fi
# A library that is not there is the loader's to complain of, and the program runs.
rm -f "$WORK/run"
LD_PRELOAD=/no/such/library.so "$LAUNCHER" -q -o "$WORK/run" -- "$PROGRAMS/blocks" 10 12345 2>"$WORK/err"
tap_equal "a library that is not there: the program runs, recorded" "0 10" "$? $(count_size run 12345)"
tap_done
