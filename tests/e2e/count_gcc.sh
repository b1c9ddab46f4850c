# SPDX-License-Identifier: MIT OR Apache-2.0
# gcc compiling and linking, a tree of processes, equals the independent count.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
need_command gcc
cat >"$WORK/one.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int twice(int);
int main(void) { char *s = strdup("x"); printf("%d%s\n", twice(21), s); free(s); return 0; }
END
echo 'int twice(int x) { return 2 * x; }' >"$WORK/two.c"
counted "gcc compiling" gcc -O2 -o "$WORK/made" "$WORK/one.c" "$WORK/two.c"
tap_equal "gcc compiling: what it made runs" "42x" "$("$WORK/made")"
tap_check "gcc compiling: it is a tree of processes" test "$(count_type counted Exec)" -ge 6
tap_done
