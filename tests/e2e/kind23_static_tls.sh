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
shim=$(find "$MT_BUILDDIR" -name libmemtrack-preload.so -path '*/.libs/*' | head -n 1)
tap_equal "our library loaded by dlopen does no harm" 1 "$("$WORK/loader" "$shim")"
tap_done
