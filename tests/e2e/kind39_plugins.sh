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

# Those that bring operator new themselves, and take it away again; the next has it elsewhere. (What is
# linked with a static libstdc++ is never unloaded: it has symbols that must be unique.)
cat >"$WORK/own.cc" <<'END'
#include <cstdlib>
#include <new>
extern "C" int plugin_run(unsigned long size);
#if PADDING
extern "C" int plugin_padding(int);
extern "C" int plugin_padding(int a) { return a * a + PADDING; }
#endif
static unsigned long calls;
void *operator new(std::size_t size)
{
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return malloc(size);
}
void operator delete(void *block) noexcept { free(block); }
void operator delete(void *block, std::size_t) noexcept { free(block); }
extern "C" int plugin_run(unsigned long size)
{
	::operator delete(::operator new(size));
	return calls != 0;
}
END
cxx="$(make_value CXX) -std=c++17 -fno-builtin -fno-exceptions -fPIC -shared -nodefaultlibs"
$cxx -DPADDING=0 -o "$WORK/libown.so" "$WORK/own.cc" -lc && $cxx -DPADDING=1 -o "$WORK/libother.so" "$WORK/own.cc" -lc ||
	exit 1
counted "plugins with an operator new of their own" "$PROGRAMS/plugins" "$rounds" "$WORK/libown.so" "$WORK/libother.so"
tap_equal "plugins with an operator new of their own: each call" "$rounds $rounds" \
	"$(count_size counted 73001) $(count_size counted 73002)"
tap_check "plugins with an operator new of their own: they came and went" \
	test "$(dump counted --type Mapping | grep -c 'lib\(own\|other\)\.so')" -gt 2
tap_done
