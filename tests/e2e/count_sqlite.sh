# SPDX-License-Identifier: MIT OR Apache-2.0
# sqlite3 filling a table equals the independent count.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
need_command sqlite3
cat >"$WORK/fill.sql" <<'END'
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, value REAL);
CREATE INDEX by_name ON t (name);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO t SELECT i, 'name ' || (i * 7919 % 20000), i / 3.0 FROM n;
SELECT count(*), sum(length(name)) FROM t WHERE name LIKE '%9%' GROUP BY substr(name, 6, 1) ORDER BY 2;
END
counted "sqlite3 filling a table" sqlite3 "$WORK/db" ".read $WORK/fill.sql"
tap_equal "sqlite3 filling a table: it holds them" "20000" "$(sqlite3 "$WORK/db" 'SELECT count(*) FROM t')"
tap_done
