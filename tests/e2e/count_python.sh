# SPDX-License-Identifier: MIT OR Apache-2.0
# Python parsing JSON, with every object taken by malloc, equals the independent count.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
cat >"$WORK/parse.py" <<'END'
import json
rows = [{"id": i, "name": "row %d" % i, "values": list(range(i % 20)), "ok": i % 3 == 0} for i in range(1500)]
text = json.dumps(rows)
for _ in range(4):
    assert json.loads(text) == rows
END
PYTHONMALLOC=malloc
export PYTHONMALLOC
counted "python3 parsing JSON" "$PYTHON" -S "$WORK/parse.py"
tap_check "python3 parsing JSON: there is much to count" test "$(dump counted | wc -l)" -gt 50000
tap_done
