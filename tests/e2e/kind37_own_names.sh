# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 37: nothing of ours clashes with what is the program's. The library exports the hooks alone and
# needs libc alone, and a program (or a library of its) that has functions and data with the names of
# all our internal ones calls its own, and we call ours. Nor do the hooks whose names this libc leaves
# free take the calls that a library means for a function of its own.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_command nm binutils
cc=$(make_value CC)
library=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so

# Whatever stands in the list of exports: what we stand before, and what leads there.
{
	sed -n 's/.*X([a-z_ *]*, *[A-Za-z0-9_]*, "\([A-Za-z0-9_]*\)",.*/\1/p' "$MT_SRCDIR/preload/hook_names.h"
	printf '%s\n' execv execvp execl execlp execle
} | sort -u >"$WORK/hooks"
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u >"$WORK/exported"
tap_equal "it exports the hooks, all and only them" "" "$(comm -3 "$WORK/hooks" "$WORK/exported")"
# Before glibc 2.34 threads are a part of it with a file of its own.
tap_equal "ldd shows libc and its loader only" "libc" \
	"$(ldd "$library" | sed -n 's,^[[:space:]]*\([^ ]*/\)\?\([^ /]*\) .*,\2,p' |
		grep -v -e '^linux-vdso' -e '^ld-linux' -e '^ld64' -e '^libpthread\.so\.0$' | sed 's/\..*//' | sort -u)"

# All that a linker could confuse: what has a name in the library, and names that such tools have.
nm "$library" >"$WORK/symbols" 2>/dev/null
{
	awk 'NF == 3 && $2 ~ /^[tTwWi]$/ { print $3 }' "$WORK/symbols"
	printf '%s\n' ring_push ring_pop log_init log_write buffer_flush guard_enter get_tid emit_record \
		hook_init unw_step unw_backtrace ZSTD_compress msgpack_pack_map backtrace_full
} | grep -E '^[A-Za-z_][A-Za-z0-9_]*$' | grep -v -e '^_init$' -e '^_fini$' -e '^main$' -e '^exit$' |
	sort -u | comm -23 - "$WORK/hooks" >"$WORK/functions"
awk 'NF == 3 && $2 ~ /^[bBdDrR]$/ { print $3 }' "$WORK/symbols" | grep -E '^[A-Za-z_][A-Za-z0-9_]*$' |
	grep -v -e '^__' -e '^_DYNAMIC$' -e '^_GLOBAL_OFFSET_TABLE_$' -e '^environ$' | sort -u |
	comm -23 - "$WORK/hooks" | comm -23 - "$WORK/functions" >"$WORK/data"
nm -D --undefined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$WORK/needed"
for kind in functions data; do
	comm -23 "$WORK/$kind" "$WORK/needed" | grep -vE '^(frame_dummy|deregister_tm_clones|register_tm_clones)$' \
		>"$WORK/$kind.own"
done
tap_check "the library has names to clash with ($(wc -l <"$WORK/functions.own") functions, $(wc -l <"$WORK/data.own") objects)" \
	test "$(wc -l <"$WORK/functions.own")" -gt 50 -a "$(wc -l <"$WORK/data.own")" -gt 3

# Each function of the program's counts its calls and says who it is; nobody but main calls it.
{
	echo '#include <stdlib.h>'
	echo '#include <string.h>'
	echo 'static int calls;'
	sed 's/.*/long &(void); long &(void) { calls++; return 4711; }/' "$WORK/functions.own"
	sed 's/.*/extern long &[512]; long &[512] = { 4711 };/' "$WORK/data.own"
	echo 'int clash(void); int clash(void) { int wrong = 0; calls = 0;'
	echo 'for (int i = 0; i < 1000; i++) { void *block = malloc(370001); if (!block) return 1; free(realloc(block, 370002)); }'
	echo 'if (calls) return 2;'
	sed 's/.*/wrong += &() != 4711;/' "$WORK/functions.own"
	sed 's/.*/wrong += &[0] != 4711 || &[511] != 0;/' "$WORK/data.own"
	echo 'return wrong ? 3 : 0; }'
} >"$WORK/clash.c"
echo 'int clash(void); int main(void) { return clash(); }' >"$WORK/main.c"
$cc -w -O0 -fno-builtin -rdynamic -o "$WORK/in_program" "$WORK/clash.c" "$WORK/main.c" 2>"$WORK/err" &&
	$cc -w -O0 -fno-builtin -fPIC -shared -o "$WORK/libclash.so" "$WORK/clash.c" 2>>"$WORK/err" &&
	$cc -w -O0 -o "$WORK/in_library" "$WORK/main.c" "$WORK/libclash.so" 2>>"$WORK/err"
tap_verdict "programs with those names can be made" $? "$WORK/err"

for program in in_program in_library; do
	tracked "$program: all our names, exported" "$WORK/$program"
	tap_equal "$program: every block is there" "1000 1000" "$(count_size run 370001) $(count_size run 370002)"
done
rm -f "$WORK/run"
LD_PRELOAD=$WORK/libclash.so bounded 60 "$LAUNCHER" -q -o "$WORK/run" -- "$PROGRAMS/forker" 3 2>"$WORK/err"
tap_verdict "a library with those names, preloaded beside ours: ends well" $? "$WORK/err"
verified "a library with those names, preloaded beside ours" run
tap_equal "a library with those names, preloaded beside ours: every block is there" 6 "$(count_size run 100003)"

cat >"$WORK/pool.c" <<'END'
#include <stdlib.h>
static char pool[4096];
static int given;
static void give(void *block) { if (block != pool) abort(); given++; }
void free_sized(void *block, size_t size) { if (size != 64) abort(); give(block); }
void free_aligned_sized(void *block, size_t align, size_t size) { if (align != 8 || size != 64) abort(); give(block); }
void cfree(void *block) { give(block); }
int use_pool(void);
int use_pool(void)
{
	given = 0;
	free_sized(pool, 64);
	free_aligned_sized(pool, 8, 64);
#ifndef LATE /* then libc comes first, whose old cfree it is */
	cfree(pool);
#endif
	return given;
}
END
cat >"$WORK/pool_user.c" <<'END'
#include <dlfcn.h>
int main(int argc, char **argv)
{
	void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : RTLD_DEFAULT;
	int (*use_pool)(void) = (int (*)(void))dlsym(handle, "use_pool");

	return !use_pool || use_pool() < 2;
}
END
$cc -w -O0 -fno-builtin -fPIC -shared -o "$WORK/libpool.so" "$WORK/pool.c" &&
	$cc -w -O0 -fno-builtin -fPIC -shared -DLATE -o "$WORK/libpool2.so" "$WORK/pool.c" &&
	$cc -w -O0 -D_GNU_SOURCE -o "$WORK/opens_pool" "$WORK/pool_user.c" -ldl &&
	$cc -w -O0 -D_GNU_SOURCE -o "$WORK/has_pool" "$WORK/pool_user.c" -Wl,--no-as-needed "$WORK/libpool.so" -ldl || exit 1
tracked "a library with a free_sized and a cfree of its own" "$WORK/has_pool"
tracked "the same, loaded late" "$WORK/opens_pool" "$WORK/libpool2.so"
tap_done
