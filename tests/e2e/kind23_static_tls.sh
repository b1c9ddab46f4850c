# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 23 and 24: as many libraries with thread-local storage of the fixed kind can be loaded late
# with us as without; and our own library does no harm when it is loaded by dlopen.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cc=$(make_value CC)
cat >"$WORK/user.c" <<'END'
static __thread char storage[64] __attribute__((tls_model("initial-exec")));
int NAME(void) { return ++storage[0]; }
END
cat >"$WORK/loader.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int loaded = 0;
	for (int i = 1; i < argc; i++)
		loaded += dlopen(argv[i], RTLD_NOW) != NULL;
	printf("%d\n", loaded);
	return 0;
}
END
$cc -o "$WORK/loader" "$WORK/loader.c" -ldl || exit 1
number=1
while test "$number" -le 40; do
	$cc -shared -fPIC -DNAME=use_$number -o "$WORK/lib$number.so" "$WORK/user.c" || exit 1
	number=$((number + 1))
done
plain=$("$WORK/loader" "$WORK"/lib*.so)
tracked "40 libraries with static thread-local storage" "$WORK/loader" "$WORK"/lib*.so
tap_check "as many load with us, or all but one ($plain plain, $(cat "$WORK/out") tracked)" \
	test "$(cat "$WORK/out")" -ge "$((plain - 1))"
shim=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
tap_equal "our library loaded by dlopen does no harm" 1 "$("$WORK/loader" "$shim")"
tls=$(readelf -lW "$shim" | awk '$1 == "TLS" { print $6 }')
tap_check "our library needs two lines of static storage at most (${tls:-none})" test "$((${tls:-0}))" -le 128
cat >"$WORK/caller.c" <<'END'
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void *(*take)(size_t), *(*resize)(void *, size_t);
	void (*give)(void *);
	void *block;

	if (!library)
		return 1;
	*(void **)&take = dlsym(library, "malloc");
	*(void **)&resize = dlsym(library, "realloc");
	*(void **)&give = dlsym(library, "free");
	for (int i = 0; i < 1000; i++) {
		block = i % 2 ? malloc(100000) : take(100000);
		block = block ? resize(block, 300000) : NULL;
		if (!block)
			return 2;
		if (i % 3)
			free(block);
		else
			give(block);
	}
	return 0;
}
END
$cc -fno-builtin -o "$WORK/caller" "$WORK/caller.c" -ldl || exit 1
bounded 10 "$WORK/caller" "$shim" 2>"$WORK/err"
tap_verdict "our library loaded by dlopen, and called: serves from the program's heap" $? "$WORK/err"
# What real programs load late with storage of the fixed kind.
real=
for name in libgomp.so.1 libjemalloc.so.2 libtcmalloc_minimal.so.4; do
	real="$real $(find_library $name)"
done
for library in $real; do
	plain=$("$WORK/loader" "$library")
	tracked "${library##*/} loaded late" "$WORK/loader" "$library"
	tap_equal "${library##*/} loaded late: as without us" "$plain" "$(cat "$WORK/out")"
done

# Under an auditor, whose namespace takes of the same room.
echo 'unsigned la_version(unsigned version) { return version; }' >"$WORK/audit.c"
$cc -shared -fPIC -w -o "$WORK/libaudit.so" "$WORK/audit.c" || exit 1
plain=$(LD_AUDIT=$WORK/libaudit.so "$WORK/loader" "$WORK"/lib?.so)
tracked "under LD_AUDIT" env LD_AUDIT="$WORK/libaudit.so" "$WORK/loader" "$WORK"/lib?.so
tap_equal "under LD_AUDIT: as many load as without us" "$plain" "$(cat "$WORK/out")"

# Kind 24: a new thread's first block, behind a hundred libraries that each have storage to set up.
cat >"$WORK/dynamic.c" <<'END'
#include <stdlib.h>
static __thread char storage[256];
void *NAME(size_t size) { storage[0]++; return malloc(size); }
END
cat >"$WORK/first_block.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int count;
static char **files;
static void *take(void *unused)
{
	char name[32];
	void *block = malloc(24001);

	for (int i = 1; i < count; i++) {
		void *(*function)(size_t);

		snprintf(name, sizeof(name), "use_%d", i);
		*(void **)&function = dlsym(RTLD_DEFAULT, name);
		free(function ? function(24002) : NULL);
	}
	return block ? unused : &count;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];
	void *failed;

	count = argc;
	files = argv;
	for (int i = 1; i < count; i++)
		if (!dlopen(files[i], RTLD_NOW | RTLD_GLOBAL))
			return 1;
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, take, NULL))
			return 2;
	for (int i = 0; i < 4; i++)
		if (pthread_join(threads[i], &failed) || failed)
			return 3;
	return 0;
}
END
$cc -D_GNU_SOURCE -fno-builtin -pthread -o "$WORK/first_block" "$WORK/first_block.c" -ldl || exit 1
number=1
many=$(long 25 100)
set --
while test "$number" -le "$many"; do
	$cc -shared -fPIC -fno-builtin -w -DNAME=use_$number -o "$WORK/dyn$number.so" "$WORK/dynamic.c" || exit 1
	set -- "$@" "$WORK/dyn$number.so"
	number=$((number + 1))
done
tracked "new threads behind $many libraries" "$WORK/first_block" "$@"
tap_equal "new threads behind $many libraries: all blocks" "4 $((4 * many))" "$(count_size run 24001) $(count_size run 24002)"
tap_equal "no way of ours into storage that could be allocated" "" \
	"$(readelf -rW "$shim" | grep -E 'DTPMOD|DTPOFF|TLSDESC|__tls_get_addr')"
tap_done
