# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 15: exec without fork: every image of a chain has its records, in order, under one pid; a
# failed exec changes nothing; exec from another thread is an exec.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
start=$PROGRAMS/starter
tracked "a chain of three images" sh -c 'exec "$1" exec 11 41001 "$1" exec 12 41002 "$2" 13 41003' sh \
	"$start" "$PROGRAMS/blocks"
dump run >"$WORK/all"
tap_equal "a chain of three images: counts" "11 12 13" \
	"$(for size in 41001 41002 41003; do grep -c "\"size\":${size}[,}]" "$WORK/all"; done | paste -sd' ')"
tap_equal "a chain of three images: one pid" 1 \
	"$(sed -n 's/^{"pid":\([0-9]*\),.*"size":4100[123][,}].*/\1/p' "$WORK/all" | sort -u | wc -l)"
tap_equal "a chain of three images: in order" "41001 41002 41003" \
	"$(sed -n 's/.*"size":\(4100[123]\)[,}].*/\1/p' "$WORK/all" | uniq | paste -sd' ')"
tap_equal "a chain of three images: an Exec before each" "Exec 41001 Exec 41002 Exec 41003" \
	"$(sed -n -e 's/.*"type":"Exec".*/Exec/p' -e 's/.*"size":\(4100[123]\)[,}].*/\1/p' "$WORK/all" | uniq |
		paste -sd' ' | sed 's/^Exec \(Exec .*\)/\1/')"

# The next image may get the very addresses of the one before it, whose blocks are gone.
if setarch -R true 2>/dev/null; then
	tracked "three images at the same addresses" setarch -R "$start" exec 500 41004 "$start" exec 500 41005 \
		"$start" exec 500 41006 "$PROGRAMS/blocks" 500 41007
	tap_equal "three images at the same addresses: counts" "500 500 500" \
		"$(count_size run 41004) $(count_size run 41005) $(count_size run 41006)"
else
	tap_skip "three images at the same addresses" "addresses cannot be kept from changing here"
fi

tracked "exec from a second thread" "$start" thread 21 42001 "$PROGRAMS/blocks" 22 42002
tap_equal "exec from a second thread: counts" "21 22" "$(count_size run 42001) $(count_size run 42002)"
tracked "a failed exec" "$start" fails 31 43001 "$PROGRAMS/blocks" 32 43002
tap_equal "a failed exec: counts" "62 32" "$(count_size run 43001) $(count_size run 43002)"
# A shim before the program, as pyenv, npx and the like have: scripts that look for what to execute.
printf '#!/bin/sh\nset -e\nPATH=/bin:/usr/bin\nexec "%s/second" "$@"\n' "$WORK" >"$WORK/first"
printf '#!/usr/bin/env bash\nfor place in a b c; do test -e "$place" || :; done\nexec "%s" "$@"\n' \
	"$PROGRAMS/blocks" >"$WORK/second"
chmod 755 "$WORK/first" "$WORK/second"
tracked "two scripts before the program" "$WORK/first" 51 44001
tap_equal "two scripts before the program: counts" 51 "$(count_size run 44001)"
# The first's sh, the second's env, its bash, and the program.
tap_equal "two scripts before the program: every image is there" "4 0" \
	"$(count_type run Exec) $(count_type run Fork)"
tap_done
