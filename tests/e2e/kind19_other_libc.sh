# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 19: the library needs only old symbols of glibc. A program with another C library (musl) runs
# as itself, as the command or as a child, and also where it was made to load our library.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
library=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so

if command -v objdump >/dev/null; then
	newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
	tap_equal "the library asks for symbols of glibc ($newest)" yes "$(test -n "$newest" && echo yes)"
	tap_equal "none is newer than glibc 2.17 ($newest)" "GLIBC_2.17" \
		"$(printf '%s\nGLIBC_2.17\n' "$newest" | sort -V | tail -n 1)"
else
	tap_skip "none is newer than glibc 2.17" "objdump is not installed (package binutils)"
fi

if ! command -v musl-gcc >/dev/null; then
	tap_skip "programs with musl" "musl-gcc is not installed (package musl-tools)"
	tap_done
fi
for name in blocks passer jumper; do
	musl-gcc -D_GNU_SOURCE -O1 -fno-builtin -pthread -o "$WORK/musl_$name" "$E2E/$name.c" || exit 1
done
musl-gcc -static -o "$WORK/musl_static" "$E2E/blocks.c" || exit 1
musl=$WORK/musl_blocks
ulimit -c 0

# untracked TEXT REASON PROGRAM: it is named, on stderr and in the artifact.
untracked()
{
	tap_check "$1: stderr names it" grep -q "untracked: .*$3" "$WORK/err"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	tap_check "$1: stat names it, and why" grep -q "$3 ($2)" "$WORK/stat"
	verified "$1" run
}

# launch OPTION... -- COMMAND...
launch()
{
	rm -f "$WORK/run"
	bounded 60 "$LAUNCHER" -o "$WORK/run" "$@" </dev/null >"$WORK/out" 2>"$WORK/err"
}

rm -f "$WORK/run"
bounded 60 "$LAUNCHER" -o "$WORK/run" -- "$musl" 100 333 term 2>"$WORK/err"
tap_equal "musl command: ends as itself" 143 $?
untracked "musl command" libc musl_blocks
# The line about the program stands before what the program itself says.
cat >"$WORK/says.c" <<'END'
#include <unistd.h>
int main(void) { return write(2, "the program\n", 12) != 12; }
END
musl-gcc -o "$WORK/musl_says" "$WORK/says.c" || exit 1
launch -- "$WORK/musl_says"
tap_equal "musl command: it is said before the program starts" "musl_says program" \
	"$(sed -n -e 's/.*musl_says uses another C library.*/musl_says/p' -e 's/^the program$/program/p' "$WORK/err" | paste -sd' ')"
launch -q --require-complete -- "$musl" 100 333
tap_equal "musl command: --require-complete makes it a failure" 125 $?

launch -- sh -c '"$1" 100 333; "$2" 100 444' sh "$musl" "$PROGRAMS/blocks"
tap_equal "musl child: the command ends as itself" 0 $?
untracked "musl child" libc musl_blocks
tap_equal "musl child: its sibling is tracked" 100 "$(count_size run 444)"
launch -- "$PROGRAMS/starter" exec 100 444 "$musl" 100 333 _exit
tap_equal "musl image after one of glibc: ends as itself" 0 $?
untracked "musl image after one of glibc" libc musl_blocks
tap_equal "musl image after one of glibc: what was before is there" 100 "$(count_size run 444)"
launch -- "$musl" 100 333 exec
tap_equal "glibc image after one of musl: ends as itself" 0 $?
launch -- "$WORK/musl_static" 100 333
tap_equal "static musl command: ends as itself" 0 $?
untracked "static musl command" static musl_static

# Nobody took us out of the environment here: musl loads us, and we must be as nothing.
for name in "musl_blocks 100 333" "musl_passer 4 $(long 20000 200000)" "musl_jumper $(long 500 5000)"; do
	launch -- "$PROGRAMS/starter" kept 100 444 "$WORK/"$name
	tap_equal "loaded by musl through a bare exec, ${name%% *}: ends as itself" 0 $?
	untracked "loaded by musl through a bare exec, ${name%% *}" libc "${name%% *}"
	launch --no-follow-env -- sh -c '"$@"; exit' sh "$WORK/"$name
	tap_equal "loaded by musl with --no-follow-env, ${name%% *}: ends as itself" 0 $?
	untracked "loaded by musl with --no-follow-env, ${name%% *}" libc "${name%% *}"
done
MEMTRACK_OUTPUT=$WORK/none LD_PRELOAD=$library "$musl" 100 333 2>"$WORK/err"
tap_equal "loaded by musl in manual use: ends as itself" 0 $?
tap_equal "loaded by musl in manual use: it is said, in one line" "1 1" \
	"$(wc -l <"$WORK/err") $(grep -c 'C library' "$WORK/err")"
tap_check "loaded by musl in manual use: nothing is recorded" test ! -e "$WORK/none"
tap_done
