# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 25: blocks taken before our constructor ran, and after all exit handlers, are recorded once; so
# are those that a preloaded library takes in its constructor and in the resolver of an indirect
# function, and kind 33: early blocks are resized and given back late.
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
# Without the counter, which could not allocate that early.
cc=$(make_value CC)
$cc -fno-builtin -fPIC -shared -DPART=1 -o "$WORK/libpreloaded1.so" "$E2E/preloaded.c" &&
	$cc -fno-builtin -fPIC -shared -DPART=2 -o "$WORK/libpreloaded2.so" "$E2E/preloaded.c" \
		-L"$WORK" -lpreloaded1 -Wl,-rpath,"$WORK" &&
	$cc -D_GNU_SOURCE -fno-builtin -DPART=3 -o "$WORK/preloaded" "$E2E/preloaded.c" -ldl || exit 1
for bind in "" 1; do
	text="a library preloaded beside ours${bind:+, LD_BIND_NOW}"
	rm -f "$WORK/run"
	LD_BIND_NOW=$bind LD_PRELOAD=$WORK/libpreloaded2.so bounded 60 "$LAUNCHER" -q -o "$WORK/run" -- \
		"$WORK/preloaded" 2>"$WORK/err"
	tap_equal "$text: ends well" 0 $?
	verified "$text" run
	tap_equal "$text: its blocks, early, resized, and after our library has ended" "1 1 1 1 1 1 1 1 1 1" \
		"$(for size in 62001 62002 62003 62004 62005 62011 62012 62013 24 62021; do
			count_size run $size
		done | paste -sd' ')"
done

# All that the loader can say, which it says by its own means.
rm -f "$WORK/run"
LD_DEBUG=all LD_DEBUG_OUTPUT=$WORK/debug bounded 60 "$LAUNCHER" -q -o "$WORK/run" -- "$PROGRAMS/blocks" 1000 12345
tap_equal "with LD_DEBUG=all: ends well, all is recorded" "0 1000" "$? $(count_size run 12345)"
tap_check "with LD_DEBUG=all: the loader spoke" sh -c 'cat "$1".* | grep -q "binding file"' sh "$WORK/debug"
tap_done
