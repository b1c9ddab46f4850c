# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 23, 24 and 39: C++ libraries that are loaded late, with thread-local storage, whose operator
# new only they can see; other threads allocate meanwhile. No deadlock, all recorded.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
COUNTER=$PROGRAMS/.libs/libcounter_c.so
rounds=$(long 48 1000)
counted "plugins loaded and unloaded" "$PROGRAMS/plugins" "$PROGRAMS/.libs/libplugin.so" "$rounds"
tap_equal "plugins: operator new in each of them" "$rounds $rounds" \
	"$(count_size counted 73001) $(count_size counted 73002)"
tap_equal "plugins: their mappings are there" yes \
	"$(dump counted | grep '"type":"Mapping"' | grep -q 'libplugin\.so' && echo yes)"
tap_done
