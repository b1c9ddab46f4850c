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
if command -v make >/dev/null; then
	{
		echo "all: $(seq -s ' ' -f 'made%g' "$count")"
		printf 'made%%:; @"%s" 3 45679 _exit\n' "$PROGRAMS/blocks"
	} >"$WORK/Makefile"
	tracked "short processes of make -j16" make -s -j16 -f "$WORK/Makefile" all
	tap_equal "short processes of make -j16: three records each" "$((3 * count))" "$(count_size run 45679)"
fi
# Processes that are told of twice, and images that are named after the tracking library.
wrongly_told()
{
	"$MEMTRACK" stat --json "$WORK/run" | "$PYTHON" -c 'import json, sys
processes = json.load(sys.stdin)["processes"]
paths = [image["path"] or "" for process in processes for image in process["images"]]
print(len(processes) - len({process["pid"] for process in processes}),
      sum("libmemtrack-preload" in path for path in paths))'
}
tap_equal "short processes, 16 at once: each told of once, by its own name" "0 0" "$(wrongly_told)"
# The hello of some is read when they have ended.
killed_around_exec()
{
	tracked "$1" sh -c 'i=0
while [ $i -lt "$2" ]; do
	"$1" 30000 16 _exit & p=$!
	j=0; while [ $j -lt $((i % 25 * 40)) ]; do j=$((j + 1)); done
	kill -KILL $p; wait $p
	i=$((i + 1))
done 2>/dev/null; exit 0' sh "$PROGRAMS/blocks" "$2"
	tap_equal "$1: each told of once, by its own name" "0 0" "$(wrongly_told)"
}

killed_around_exec "killed around exec" "$count"
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat"
if grep -q '^Images .*[0-9] untracked' "$WORK/stat"; then
	tap_equal "killed around exec: each image is one of tracked, untracked, ended before" \
		"$(count_type run Exec)" "$(sed -n 's/^Images//p' "$WORK/stat" | tr -d , |
			awk '{ for (i = 1; i <= NF; i++) n += $i } END { print n }')"
	tap_equal "killed around exec: none is told to have met a recorder that stood still" 0 \
		"$(grep -c 'stood.still' "$WORK/stat")"
else
	tap_skip "killed around exec: each image is one of tracked, untracked, ended before" "not known here"
fi
# perf tells of their ends, and of no more than that: a hello that is read later is of nobody new.
TRACK_OPTIONS=--bpf=basic
killed_around_exec "killed around exec, perf alone" "$(long 75 2000)"
# Here the hello is the first word of a process, and its end is noticed by us.
TRACK_OPTIONS=--bpf=off
killed_around_exec "killed around exec, nothing from the kernel" "$(long 75 2000)"
tap_done
