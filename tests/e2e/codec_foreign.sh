#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# An artifact of ours, read with tools that are not ours: zstd and python3-msgpack.
make_artifact=$MT_BUILDDIR/tests/unit/make_artifact
python=${PYTHON:-/usr/bin/python3}

skip() {
	echo "1..0 # SKIP $1"
	exit 0
}

command -v zstd >/dev/null || skip "zstd is not installed"
"$python" -c 'import msgpack' 2>/dev/null || skip "python3-msgpack is not installed"
[ -x "$make_artifact" ] || skip "make_artifact was not built (no criterion)"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
failed=0
result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		failed=1
	fi
}

echo 1..4
"$make_artifact" "$dir/a.msgpack" "$dir/a.ndjson" 20000
result $? "an artifact is written"
zstd -qt <"$dir/a.msgpack"
result $? "zstd finds it sound"

zstd -dcq <"$dir/a.msgpack" >"$dir/a.raw"
"$python" - "$dir/a.raw" "$dir/a.ndjson" <<'EOF'
import json, msgpack, sys

unpacker = msgpack.Unpacker(open(sys.argv[1], "rb"), raw=False)
count = 0
for line in open(sys.argv[2], encoding="utf-8", newline="\n"):
    want = json.loads(line)
    got = next(unpacker)
    if "bytes" in got:
        got["bytes"] = got["bytes"].hex()
    assert list(want) == list(got), (want, got)
    assert want == got, (want, got)
    count += 1
assert count == 20000, count
assert not list(unpacker), "more than the events"
EOF
result $? "python3-msgpack reads the events as one stream"

"$python" - "$dir/a.msgpack" <<'EOF'
import msgpack, struct, sys, zlib

data = open(sys.argv[1], "rb").read()
magic, length = struct.unpack_from("<II", data)
assert magic == 0x184D2A5D
inside = data[8:8 + length]
assert inside[:4] == b"MTRK" and inside[4] == 1 and inside[5] == 1
assert struct.unpack_from("<I", inside, 8)[0] == zlib.crc32(inside[12:])
first = msgpack.unpackb(inside[12:], raw=False)
assert first == {"frame": "open", "state": "open", "events": 7, "command": ["./bench", b"\xff"]}, first
EOF
result $? "its metadata is laid out as docs/format.md says"
exit $failed
