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
tap_done
