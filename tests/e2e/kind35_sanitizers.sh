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

# A sanitizer in LD_PRELOAD, for a program that loads what is built with one: it insists as much.
asan=$(realpath "$($cc -print-file-name=libasan.so)" 2>/dev/null)
if test -e "$asan" && ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$asan "$PROGRAMS/blocks" 1 1 2>/dev/null; then
	for preload in '$2' '$2:$LD_PRELOAD' '$LD_PRELOAD:$2' '/no/such/lib.so $2'; do
		rm -f "$WORK/run"
		ASAN_OPTIONS=detect_leaks=0 "$LAUNCHER" -o "$WORK/run" -- sh -c \
			"LD_PRELOAD=\"$preload\" \"\$1\" 100 333 && unset LD_PRELOAD && \"\$1\" 100 444" \
			sh "$PROGRAMS/blocks" "$asan" 2>"$WORK/err"
		tap_verdict "LD_PRELOAD=$preload: the program ends as itself" $? "$WORK/err"
		tap_equal "LD_PRELOAD=$preload: its sibling is tracked" "0 100" "$(count_size run 333) $(count_size run 444)"
		tap_check "LD_PRELOAD=$preload: it is listed" grep -q '^memtrack: untracked: .*/blocks: ' "$WORK/err"
	done
	rm -f "$WORK/run"
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$asan "$LAUNCHER" -o "$WORK/run" -- "$PROGRAMS/blocks" 100 333 2>"$WORK/err"
	tap_verdict "LD_PRELOAD=$asan for the command: it ends as itself" $? "$WORK/err"
	tap_check "LD_PRELOAD=$asan for the command: it is said" grep -q "blocks runs with a sanitizer.*libasan" "$WORK/err"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	tap_check "LD_PRELOAD=$asan for the command: stat names it, and why" grep -q 'blocks (sanitizer)' "$WORK/stat"
	# A folder of that name is none.
	mkdir "$WORK/libasan.d" && cp "$PROGRAMS/.libs/libplugin.so" "$WORK/libasan.d/" || exit 1
	track run sh -c 'LD_PRELOAD=$2 exec "$1" 100 333' sh "$PROGRAMS/blocks" "$WORK/libasan.d/libplugin.so" 2>"$WORK/err"
	tap_equal "a library that only lies in a folder of such a name: tracked" "0 100" "$? $(count_size run 333)"
else
	tap_skip "a sanitizer in LD_PRELOAD" "libasan is not installed, or does not run here"
fi
tap_done
