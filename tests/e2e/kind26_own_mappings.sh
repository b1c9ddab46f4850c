# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 26 and 31: the program's own mappings are events, those which the allocator, the loader or
# the thread library makes for itself are not.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

# mappings FILE: the mapping events of its lines, their sizes in pages.
mappings()
{
	sed -n 's/.*"type":"\(M[a-z]*map\)","size":\([0-9]*\)[,}].*/\1 \2/p' "$1" |
		awk '{ print $1, $2 / 4096 }' | paste -sd' '
}

tracked "mappings" "$PROGRAMS/mapper"
dump run >"$WORK/all"
tap_equal "its own mapping and unmapping, mremap as both, and both again where it fails" \
	"Mmap 37 Munmap 37 Mmap 41 Munmap 41 Mmap 41 Munmap 41" \
	"$(mappings "$WORK/all")"
tap_equal "a block of 64 MiB is a block" 1 "$(grep -c '"type":"Malloc","size":67108864[,}]' "$WORK/all")"
tap_equal "its growth to 128 MiB is one event" 1 \
	"$(grep -c '"type":"Realloc","old_addr":[0-9]*,"size":134217728[,}]' "$WORK/all")"
# The same with an allocator that calls mmap and munmap as we do, also when no block is asked for.
jemalloc=$(find_library 'libjemalloc.so.2')
if test -n "$jemalloc"; then
	cp "$WORK/all" "$WORK/glibc"
	MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0,retain:false LD_PRELOAD=$jemalloc track run "$PROGRAMS/mapper" 2>"$WORK/err"
	tap_verdict "jemalloc: ends well" $? "$WORK/err"
	dump run >"$WORK/all"
	tap_equal "jemalloc: the program's own mappings and no other" "$(mappings "$WORK/glibc")" "$(mappings "$WORK/all")"
else
	tap_skip "jemalloc" "libjemalloc2 is not installed"
fi
TRACK_OPTIONS=--no-mmap-events
tracked "without mapping events" "$PROGRAMS/mapper"
tap_equal "without mapping events: none" "0 0" "$(count_type run Mmap) $(count_type run Munmap)"
tap_done
