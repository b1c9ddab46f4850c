# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 23, 24 and 39: C++ libraries that are loaded late, with thread-local storage, whose operator
# new only they can see; other threads allocate meanwhile. No deadlock, all recorded.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
COUNTER=$PROGRAMS/.libs/libcounter_c.so
rounds=$(long 48 1000)
counted "plugins loaded and unloaded" "$PROGRAMS/plugins" "$rounds" "$PROGRAMS/.libs/libplugin.so"
tap_equal "plugins: operator new in each of them" "$rounds $rounds" \
	"$(count_size counted 73001) $(count_size counted 73002)"
tap_equal "plugins: their mappings are there" yes \
	"$(dump counted | grep '"type":"Mapping"' | grep -q 'libplugin\.so' && echo yes)"

# Those that bring operator new themselves, and take it away again; the next has it elsewhere.
cxx="$(make_value CXX) -std=c++17 -fno-builtin -fPIC -shared -static-libstdc++"
if $cxx -o "$WORK/libown.so" "$E2E/plugin.cc" 2>"$WORK/err" &&
	$cxx -Wl,-z,noseparate-code -o "$WORK/libother.so" "$E2E/plugin.cc" 2>"$WORK/err"; then
	counted "plugins with an operator new of their own" "$PROGRAMS/plugins" "$rounds" "$WORK/libown.so" "$WORK/libother.so"
	tap_equal "plugins with an operator new of their own: each call" "$rounds $rounds" \
		"$(count_size counted 73001) $(count_size counted 73002)"
else
	tap_skip "plugins with an operator new of their own" "no static libstdc++ to link with"
fi
tap_done
