# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 26 and 31: the program's own mappings are events, those which the allocator, the loader or
# the thread library makes for itself are not.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
tracked "mappings" "$PROGRAMS/mapper"
dump run >"$WORK/all"
page=4096
tap_equal "its own mapping and unmapping, mremap as both" "Mmap 37 Munmap 37 Mmap 41 Munmap 41" \
	"$(sed -n 's/.*"type":"\(M[a-z]*map\)","size":\([0-9]*\)[,}].*/\1 \2/p' "$WORK/all" |
		awk -v page="$page" '{ print $1, $2 / page }' | paste -sd' ')"
tap_equal "a block of 64 MiB is a block" 1 "$(grep -c '"type":"Malloc","size":67108864[,}]' "$WORK/all")"
tap_equal "its growth to 128 MiB is one event" 1 \
	"$(grep -c '"type":"Realloc","old_addr":[0-9]*,"size":134217728[,}]' "$WORK/all")"
TRACK_OPTIONS=--no-mmap-events
tracked "without mapping events" "$PROGRAMS/mapper"
tap_equal "without mapping events: none" "0 0" "$(count_type run Mmap) $(count_type run Munmap)"
tap_done
