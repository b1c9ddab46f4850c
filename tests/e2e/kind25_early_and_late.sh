# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 25: blocks taken before our constructor ran, and after all exit handlers, are recorded once.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
check_all()
{
	dump counted >"$WORK/all"
	for size in 61001 61002 61003 61004 61005 200001; do
		tap_equal "$1: the block of $size bytes" 1 "$(grep -c "\"size\":${size}[,}]" "$WORK/all")"
	done
}
counted "as early and late as can be" "$PROGRAMS/early"
check_all "as early and late as can be"
LD_BIND_NOW=1
export LD_BIND_NOW
counted "with LD_BIND_NOW" "$PROGRAMS/early"
check_all "with LD_BIND_NOW"
tap_done
