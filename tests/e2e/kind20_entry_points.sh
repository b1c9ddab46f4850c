# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 20, 21, 32 and 33: every entry point gives one event a success and none a failure, with the
# size asked for; errno and results are as without us; realloc in all its forms leaves the live set
# that the program has.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
counted "all entry points" "$PROGRAMS/entries"
dump counted >"$WORK/all"

# of TYPE SIZE
of()
{
	grep -c "\"type\":\"$1\",\(\"old_addr\":[0-9]*,\)\?\"size\":${2}[,}]" "$WORK/all"
}

tap_equal "malloc: once" 1 "$(of Malloc 20020)"
tap_equal "calloc: members times size" 1 "$(of Calloc $((20021 / 3 * 3)))"
tap_equal "posix_memalign: ten alignments" 10 "$(of AlignedAlloc 20001)"
tap_equal "posix_memalign with a bad alignment: none" 0 "$(of AlignedAlloc 20002)"
tap_equal "aligned_alloc" 1 "$(of AlignedAlloc 20032)"
tap_equal "memalign" 1 "$(of AlignedAlloc 20005)"
tap_equal "valloc" 1 "$(of AlignedAlloc 20006)"
tap_equal "pvalloc, as asked for" 1 "$(of AlignedAlloc 20007)"
tap_equal "errno through many calls" "3000 3000" "$(of Malloc 20010) $(of Realloc 20011)"
tap_equal "errno in new threads" 10 "$(of Malloc 20012)"
tap_equal "realloc of NULL tells an old address of 0" 1 \
	"$(grep -c '"type":"Realloc","old_addr":0,"size":30001[,}]' "$WORK/all")"
tap_equal "realloc that grows, shrinks, and of an aligned block" "1 1 1" \
	"$(of Realloc 300002) $(of Realloc 30003) $(of Realloc 300006)"
tap_equal "reallocarray" 1 "$(of Realloc 30004)"
tap_equal "nothing of impossible size" 0 "$(grep -c '"size":[0-9]\{12,\}' "$WORK/all")"
tap_equal "blocks that libc takes: asprintf" 1 "$(grep -c '"size":40001[,}]' "$WORK/all")"
PYTHONPATH=$E2E "$PYTHON" -B - "$WORK/counted" >"$WORK/left" <<'END'
import sys
import artifact
live = {}
for event in artifact.events(sys.argv[1]):
    if event.get("old_addr"):
        live.pop(event["old_addr"], None)
    if event["type"] == "Free":
        live.pop(event["addr"], None)
    elif event["type"] in artifact.ALLOCATIONS:
        live[event["addr"]] = event["size"]
print(sum(20000 <= size <= 40001 or size >= 300000 for size in live.values()))
END
tap_equal "all that the program took is given back" 0 "$(cat "$WORK/left")"
# What this libc may lack, or keeps for old programs only: reached as such a program would.
cat >"$WORK/old_and_new.c" <<'END'
#include <dlfcn.h>
#include <stdlib.h>
int main(void)
{
	void (*sized)(void *, size_t) = dlsym(RTLD_DEFAULT, "free_sized");
	void (*aligned)(void *, size_t, size_t) = dlsym(RTLD_DEFAULT, "free_aligned_sized");
	void (*old)(void *) = dlsym(RTLD_DEFAULT, "cfree");

	if (!sized || !aligned || !old)
		return 1;
	for (int i = 0; i < 100; i++) {
		sized(malloc(21001), 21001);
		aligned(aligned_alloc(64, 21056), 64, 21056);
		old(calloc(3, 7001));
		sized(NULL, 0);
	}
	return 0;
}
END
$(make_value CC) -D_GNU_SOURCE -fno-builtin -o "$WORK/old_and_new" "$WORK/old_and_new.c" -ldl || exit 1
tracked "free_sized, free_aligned_sized, cfree" "$WORK/old_and_new"
dump run >"$WORK/all"
tap_equal "free_sized, free_aligned_sized, cfree: each block, once" "100 100 100" \
	"$(of Malloc 21001) $(of AlignedAlloc 21056) $(of Calloc 21003)"
tap_check "free_sized, free_aligned_sized, cfree: each free" test "$(count_type run Free)" -ge 300
tap_done
