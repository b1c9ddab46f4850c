# SPDX-License-Identifier: MIT OR Apache-2.0
# Manual use: LD_PRELOAD alone. The program starts its own sidecar, which ends with the tree.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
library=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
MEMTRACK_OUTPUT=$WORK/run
export MEMTRACK_OUTPUT

LD_PRELOAD=$library "$PROGRAMS/blocks" 1000 12345 2>"$WORK/err"
tap_equal "a program by itself ends as itself" 0 $?
tap_check "a program by itself: nothing is printed" test ! -s "$WORK/err"
tap_check "a program by itself: the file is finished" bounded 20 "$MEMTRACK" stat --wait "$WORK/run"
tap_equal "a program by itself: all blocks" 1000 "$(count_size run 12345)"
verified "a program by itself" run

# What the first image had mapped before the sidecar's sources were open is known all the same, once.
for bpf in auto off; do
	rm -f "$WORK/run"
	MEMTRACK_BPF=$bpf LD_PRELOAD=$library "$PROGRAMS/blocks" 10 10
	bounded 20 "$MEMTRACK" stat --wait "$WORK/run" >"$WORK/stat"
	tap_check "bpf $bpf: the program is named" grep -q "/blocks\$" "$WORK/stat"
	dump run | sed -n 's/.*"type":"\(Exec\|Mapping\)".*/\1/p' | head -n 2 | tr '\n' ' ' >"$WORK/order"
	tap_equal "bpf $bpf: mappings follow the Exec" "Exec Mapping " "$(cat "$WORK/order")"
	for file in "$(readlink -f "$PROGRAMS/blocks")" "$(readlink -f "$library")"; do
		tap_equal "bpf $bpf: ${file##*/} is mapped once" 1 \
			"$(dump run | grep '"type":"Mapping"' | grep -c "\"$file\"")"
	done
done

rm -f "$WORK/run"
LD_PRELOAD=$library sh -c '"$1" 100 11111; (exec "$1" 100 22222); exec "$1" 100 33333' sh "$PROGRAMS/blocks" 2>"$WORK/err"
tap_equal "a tree ends as itself" 0 $?
tap_check "a tree: the file is finished" bounded 20 "$MEMTRACK" stat --wait "$WORK/run"
tap_equal "a tree: all images are in one file" "100 100 100" \
	"$(count_size run 11111) $(count_size run 22222) $(count_size run 33333)"
verified "a tree" run

# The sidecar outlives the first process as long as there are others, and holds nothing of theirs open.
rm -f "$WORK/run"
said=$(LD_PRELOAD=$library bounded 20 sh -c '(exec >/dev/null 2>&1; read line <"$2"; exec "$1" 100 44444) &
	echo hi' sh "$PROGRAMS/blocks" "$(mkfifo "$WORK/fifo"; echo "$WORK/fifo")" 2>/dev/null)
tap_equal "a daemon: the output ends with the program" "hi" "$said"
echo go >"$WORK/fifo"
tap_check "a daemon: the file is finished when it has ended" bounded 20 "$MEMTRACK" stat --wait "$WORK/run"
tap_equal "a daemon: its blocks are there" 100 "$(count_size run 44444)"

MEMTRACK_OUTPUT=/no/such/folder/file
LD_PRELOAD=$library "$PROGRAMS/blocks" 1000 12345 2>"$WORK/err"
tap_equal "an output that cannot be written: the program runs all the same" 0 $?
tap_equal "an output that cannot be written: it is said once" 1 "$(grep -c memtrack "$WORK/err")"
tap_done
