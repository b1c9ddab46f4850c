# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 35: programs built with a sanitizer start and work as without us, and are named as untracked;
# the rest of the tree is recorded.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cc=$(make_value CC)
for compiler in "$cc" clang; do for sanitizer in address thread leak; do
	command -v "${compiler%% *}" >/dev/null || {
		tap_skip "$compiler $sanitizer" "$compiler is not installed"
		continue
	}
	if ! $compiler -fsanitize=$sanitizer -o "$WORK/with_$sanitizer" "$E2E/blocks.c" -pthread 2>/dev/null ||
		! ASAN_OPTIONS=detect_leaks=0 "$WORK/with_$sanitizer" 1 1 2>/dev/null; then
		tap_skip "$compiler $sanitizer" "the compiler has no -fsanitize=$sanitizer that runs here"
		continue
	fi
	rm -f "$WORK/run"
	ASAN_OPTIONS=detect_leaks=0 "$LAUNCHER" -o "$WORK/run" -- \
		sh -c '"$1" 100 333 _exit && "$2" 100 444' sh "$WORK/with_$sanitizer" "$PROGRAMS/blocks" 2>"$WORK/err"
	tap_verdict "$compiler $sanitizer: the program ends as itself" $? "$WORK/err"
	tap_equal "$compiler $sanitizer: its sibling is tracked" 100 "$(count_size run 444)"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	# With a runtime linked in, as clang has it, it is one of those that bring their own malloc.
	tap_check "$compiler $sanitizer: stat names it, and why" \
		grep -qE "with_$sanitizer \((sanitizer|own-malloc)\)" "$WORK/stat"
	rm -f "$WORK/run"
	ASAN_OPTIONS=detect_leaks=0 "$LAUNCHER" -o "$WORK/run" -- "$WORK/with_$sanitizer" 100 333 _exit 2>"$WORK/err"
	tap_verdict "$compiler $sanitizer as the command: ends as itself" $? "$WORK/err"
	tap_check "$compiler $sanitizer as the command: it is said" grep -q 'sanitizer' "$WORK/err"
done; done
tap_done
