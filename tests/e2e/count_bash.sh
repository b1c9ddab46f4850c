# SPDX-License-Identifier: MIT OR Apache-2.0
# A bash loop with 200 forks, some of which start programs, equals the independent count.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
need_command bash
counted "bash with 200 forks" bash -c 'sum=0
for i in {1..180}; do (x=${i}a; y=$x$x; [ "$y" = "${i}a${i}a" ]) || exit 1; done
for i in {1..20}; do n=$(expr $i + 1); sum=$((sum + n)); done
echo $sum'
tap_equal "bash with 200 forks: says what it should" "230" "$(cat "$WORK/out")"
tap_check "bash with 200 forks: they are there" test "$(count_type counted Fork)" -ge 200
tap_equal "bash with 200 forks: as many ends as processes" "$(($(count_type counted Fork) + 1))" \
	"$(count_type counted Exit)"
tap_done
