# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 18: processes that are gone before anybody looks: every record of every one is there.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
count=$(long 150 5000)
tracked "short processes, one after the other" sh -c 'i=0
while [ $i -lt "$2" ]; do "$1" 3 45678 _exit; i=$((i + 1)); done' sh "$PROGRAMS/blocks" "$count"
tap_equal "short processes: three records each" "$((3 * count))" "$(count_size run 45678)"
tap_equal "short processes: all have an end" "$((count + 1))" "$(count_type run Exit)"
tracked "short processes, 16 at once" sh -c 'seq "$2" | xargs -P 16 -I N "$1" 3 45678 _exit' sh \
	"$PROGRAMS/blocks" "$count"
tap_equal "short processes, 16 at once: three records each" "$((3 * count))" "$(count_size run 45678)"
tap_done
