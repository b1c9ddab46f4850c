# SPDX-License-Identifier: MIT OR Apache-2.0
# node -e equals the independent count.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
need_command node nodejs
counted "node -e" node -e 'const rows = [];
for (let i = 0; i < 20000; i++) rows.push({ id: i, name: "row " + i });
const back = JSON.parse(JSON.stringify(rows));
const buffers = back.slice(0, 500).map((row) => Buffer.alloc(row.id * 10 + 1));
console.log(back.length, buffers.length);'
tap_equal "node -e: says what it should" "20000 500" "$(cat "$WORK/out")"
tap_done
