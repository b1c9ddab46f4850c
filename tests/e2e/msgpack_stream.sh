# SPDX-License-Identifier: MIT OR Apache-2.0
# An artifact, unpacked by zstd(1), is a clean msgpack stream in the shortest forms, with the keys of
# the format in their order; and dump says the same as python3-msgpack.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
track run sh -c '"$1" 2000 33; "$2"; "$3" 3' sh "$PROGRAMS/blocks" "$PROGRAMS/entries" "$PROGRAMS/forker" \
	>"$WORK/out" 2>"$WORK/err"
tap_verdict "stream: the run ends well" $? "$WORK/err"
tap_check "stream: zstd finds the file whole" zstd -q -t "$WORK/run"
zstd -q -dc "$WORK/run" >"$WORK/stream"
tap_check "stream: shortest forms, known types, keys in order" "$PYTHON" -B "$E2E/stream.py" "$WORK/stream" \
	"$WORK/lines"
dump run >"$WORK/dumped"
tap_check "stream: memtrack dump says the same" cmp "$WORK/lines" "$WORK/dumped"
tap_done
