# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 10: threads that hand blocks, or mappings, to each other get each other's addresses again at
# once. In the order of the file nothing is taken while live or given back while dead, ever.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
rounds=$(long 10000 200000)

# left_at_end NAME: bytes that are live at the end.
left_at_end()
{
	"$MEMTRACK" stat --json "$WORK/$1" | "$PYTHON" -c 'import json, sys
print(json.load(sys.stdin)["live_at_end"]["bytes"])'
}

# The thread library keeps what it took for its threads; that is there without any round as well.
track idle "$PROGRAMS/passer" 8 0 2>"$WORK/err"
counted "heap, 8 threads" "$PROGRAMS/passer" 8 "$((rounds / 2))"
for order in fast strict; do
	TRACK_OPTIONS="--order=$order"
	tracked "heap, 8 threads, order $order" "$PROGRAMS/passer" 8 "$rounds"
	tap_check "heap, order $order: reallocs that moved are among it" test "$(count_type run Realloc)" -gt 1000
	tap_equal "heap, order $order: nothing of the program's is left" "$(left_at_end idle)" "$(left_at_end run)"
done

# maps NAME: a replay of the mappings, page by page.
maps()
{
	PYTHONPATH=$E2E "$PYTHON" -B - "$WORK/$1" <<'END'
import sys
import artifact
PAGE = 4096
live, wrong, count = set(), 0, 0
for event in artifact.events(sys.argv[1]):
    if event["type"] not in ("Mmap", "Munmap"):
        continue
    count += 1
    first = event["addr"] // PAGE
    pages = range(first, first + -(-event["size"] // PAGE))
    for page in pages:
        if (page in live) == (event["type"] == "Mmap"):
            wrong += 1
    if event["type"] == "Mmap":
        live.update(pages)
    else:
        live.difference_update(pages)
print(f"{wrong} contradictions, {len(live)} pages left, {'many' if count > 50000 else count} events")
END
}
for order in fast strict; do
	TRACK_OPTIONS="--order=$order"
	tracked "mappings, 8 threads, order $order" "$PROGRAMS/passer" 8 "$rounds" map
	tap_equal "mappings, order $order: none is made while there, or goes twice" \
		"0 contradictions, 0 pages left, many events" "$(maps run)"
done
tap_done
