# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 35: programs built with a sanitizer start and work as without us, and are named as untracked;
# the rest of the tree is recorded.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cc=$(make_value CC)
for sanitizer in address thread; do
	if ! $cc -fsanitize=$sanitizer -o "$WORK/with_$sanitizer" "$E2E/blocks.c" -pthread 2>/dev/null ||
		! ASAN_OPTIONS=detect_leaks=0 "$WORK/with_$sanitizer" 1 1 2>/dev/null; then
		tap_skip "$sanitizer" "the compiler has no -fsanitize=$sanitizer that runs here"
		continue
	fi
	rm -f "$WORK/run"
	ASAN_OPTIONS=detect_leaks=0 "$LAUNCHER" -o "$WORK/run" -- \
		sh -c '"$1" 100 333 _exit && "$2" 100 444' sh "$WORK/with_$sanitizer" "$PROGRAMS/blocks" 2>"$WORK/err"
	tap_verdict "$sanitizer: the program ends as itself" $? "$WORK/err"
	tap_equal "$sanitizer: its sibling is tracked" 100 "$(count_size run 444)"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	tap_check "$sanitizer: stat names it" grep -q "with_$sanitizer" "$WORK/stat"
done
tap_done
