# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 5: a library that is opened with RTLD_DEEPBIND, or in another namespace, has a malloc that
# comes before ours. What it takes is not seen, and the image is listed; one that opens nothing so is
# not. The loader looks from the caller's place, as without us.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
cc="$(make_value CC) -std=gnu11 -D_GNU_SOURCE -O0 -fno-builtin"

# The caller's RUNPATH leads to libinner.so; nobody else's does.
mkdir -p "$WORK/caller/inner" "$WORK/elsewhere"
part()
{
	part_number=$1
	shift
	$cc -DPART="$part_number" "$E2E/opener.c" -o "$@" -ldl || exit 1
}
part 1 "$WORK/caller/inner/libinner.so" -fPIC -shared
cp "$WORK/caller/inner/libinner.so" "$WORK/elsewhere/libused.so"
part 2 "$WORK/caller/libcaller.so" -fPIC -shared '-Wl,--enable-new-dtags,-rpath,$ORIGIN/inner'
part 3 "$WORK/opener" -Wl,--no-as-needed "$WORK/caller/libcaller.so"
part 4 "$WORK/elsewhere/libpasser.so" -fPIC -shared
part 5 "$WORK/elsewhere/libopens.so" -fPIC -shared
used=$WORK/elsewhere/libused.so
opener=$WORK/opener
test -z "${MT_EMULATOR:-}" || opener='[^ ]*' # the kernel names the emulator

# run_as_plain TEXT ARGUMENT...: the opener says with us what it says without. IN, if it is set, is a
# script that runs it.
run_as_plain()
{
	plain_text=$1
	shift
	set -- "$WORK/opener" "$@"
	test -z "${IN:-}" || set -- "$TRACKED_SH" -c "$IN" sh "$@"
	LD_PRELOAD=${BESIDE:-} "$@" >"$WORK/plain" 2>&1 </dev/null
	rm -f "$WORK/run"
	LD_PRELOAD=${BESIDE:-} bounded 60 "$LAUNCHER" ${OPTIONS:-} -o "$WORK/run" -- "$@" \
		>"$WORK/out" 2>"$WORK/err" </dev/null
	tap_equal "$plain_text: ends, and says what it says without us" "0 $(cat "$WORK/plain")" "$? $(cat "$WORK/out")"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
}

# listed TEXT REASON ARGUMENT...
listed()
{
	listed_text=$1
	reason=$2
	shift 2
	run_as_plain "$listed_text" "$@"
	tap_equal "$listed_text: stderr names it once" 1 "$(grep -c "untracked: pid [0-9]* $opener: in part: " "$WORK/err")"
	tap_equal "$listed_text: stat names it once, and why" 1 "$(grep -c "$opener ($reason)" "$WORK/stat")"
	tap_equal "$listed_text: counted once" 1 "$(sed -n 's/.*, \([0-9]*\) untracked images\{0,1\}.*/\1/p' "$WORK/err")"
	tap_equal "$listed_text: the program's own blocks are there" 50 "$(count_size run 71002)"
}

# not_listed TEXT ARGUMENT...
not_listed()
{
	run_as_plain "$@"
	tap_equal "$1: nothing is listed" "0 0" \
		"$(grep -c 'untracked: pid' "$WORK/err") $(grep -cE "\((deepbind|dlmopen)\)" "$WORK/stat")"
}

listed "RTLD_DEEPBIND" deepbind deep "$used"
tap_equal "RTLD_DEEPBIND: what it hides is not made up" 0 "$(count_size run 71001)"
tap_equal "RTLD_DEEPBIND: --require-complete makes it a failure" 125 \
	"$(bounded 60 "$LAUNCHER" -q --force --require-complete -o "$WORK/run" -- "$WORK/opener" deep "$used" >"$WORK/out" 2>&1; echo $?)"
OPTIONS=--bpf=off
listed "RTLD_DEEPBIND without kernel events" deepbind deep "$used"
OPTIONS=
listed "RTLD_DEEPBIND by dlmopen" deepbind basedeep "$used"
listed "RTLD_DEEPBIND by way of the caller's RUNPATH" deepbind deepfor libinner.so
tap_equal "RTLD_DEEPBIND by way of the caller's RUNPATH: it was found" open "$(sed -n '1s/ .*//p' "$WORK/out")"
listed "RTLD_DEEPBIND in vain" deepbind deep /nonexistent/libnone.so
listed "another namespace" dlmopen new "$used"
IN='"$@" | cat' # which waits for the child
listed "RTLD_DEEPBIND in a child whose parent has ended" deepbind deep "$used" orphan
listed "RTLD_DEEPBIND in a child whose parent is another program" deepbind deep "$used" left
IN=

not_listed "an ordinary library" plain "$used"
tap_equal "an ordinary library: its blocks are there" 50 "$(count_size run 71001)"
if grep -q ', 0 untracked images' "$WORK/err"; then
	bounded 60 "$LAUNCHER" -q --force --require-complete -o "$WORK/run" -- "$WORK/opener" plain "$used" >"$WORK/out" 2>&1
	tap_equal "an ordinary library: the recording is complete" 0 $?
else
	tap_skip "an ordinary library: the recording is complete" "needs kernel events"
fi
not_listed "a library by the caller's RUNPATH" for libinner.so
tap_equal "a library by the caller's RUNPATH: it was found" open "$(sed -n '1s/ .*//p' "$WORK/out")"
not_listed "a library that the program's own place does not lead to" plain libinner.so
not_listed "RTLD_NOLOAD" again "$used"
not_listed "the program itself" self "$used"
not_listed "dlmopen in the program's own namespace" base "$used"

# Others that stand before dlopen, before us and behind us (the exec functions put us in front).
if ! cannot_emulate "other hooks of dlopen" "it loads what is preloaded itself"; then
	BESIDE=$WORK/elsewhere/libpasser.so
	listed "another hook of dlopen behind ours" deepbind deepfor libinner.so
	not_listed "another hook of dlopen behind ours, an ordinary library" plain "$used"
	rm -f "$WORK/run"
	LD_PRELOAD= bounded 60 "$LAUNCHER" --no-follow-env -o "$WORK/run" -- sh -c \
		'LD_PRELOAD=$1:$LD_PRELOAD exec "$2" deep "$3"' sh "$BESIDE" "$WORK/opener" "$used" >"$WORK/out" 2>"$WORK/err" </dev/null
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	tap_equal "another hook of dlopen before ours: opened, and listed" "open 0 1" \
		"$(head -n 1 "$WORK/out") $(grep -c "$WORK/opener (deepbind)" "$WORK/stat")"
	BESIDE=$WORK/elsewhere/libopens.so
	OPENER_FILE=$used
	export OPENER_FILE
	listed "RTLD_DEEPBIND before our library is initialised" deepbind plain "$used"
	BESIDE=
	unset OPENER_FILE
fi

# One that is listed for another reason is listed for that.
if ! cannot_emulate "RTLD_DEEPBIND beside an allocator of its own" "the kernel shows the emulator's executable"; then
	echo 'void *mi_malloc(unsigned long size); void *mi_malloc(unsigned long size) { return (void *)size; }' >"$WORK/own.c"
	mv "$WORK/opener" "$WORK/opener.first"
	$cc -DPART=3 -o "$WORK/opener" "$E2E/opener.c" "$WORK/own.c" -Wl,--no-as-needed "$WORK/caller/libcaller.so" -ldl || exit 1
	run_as_plain "RTLD_DEEPBIND beside an allocator of its own" deep "$used"
	tap_equal "RTLD_DEEPBIND beside an allocator of its own: listed once" "1 1" \
		"$(grep -c 'untracked: pid' "$WORK/err") $(grep -c "$WORK/opener (own-malloc)" "$WORK/stat")"
fi

if test -z "${MT_EMULATOR:-}" && php -m >/dev/null 2>&1 && test "$(php -n -m 2>/dev/null | wc -l)" -lt "$(php -m 2>/dev/null | wc -l)"; then
	rm -f "$WORK/run"
	bounded 60 "$LAUNCHER" -q -o "$WORK/run" -- php -r 'echo strlen("four");' >"$WORK/out" 2>"$WORK/err" </dev/null
	tap_equal "php with its extensions: as without us, and listed" "4 1" \
		"$(cat "$WORK/out") $("$MEMTRACK" stat "$WORK/run" 2>&1 | grep -c '/php[^ ]* (deepbind)')"
else
	tap_skip "php with its extensions" "it is not installed, or has none"
fi
tap_done
