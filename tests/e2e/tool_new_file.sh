# SPDX-License-Identifier: MIT OR Apache-2.0
# What memtrack repair and recompress write: under the name stands the old file or the whole new one,
# whatever ends the command, and nothing is left beside it.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"

left()
{
	ls -A | grep -c '^\.memtrack-'
}

for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	cat "$GOLDEN/frames.msgpack" "$GOLDEN/frames.msgpack"
done >large

# ended SIGNAL [COMMAND...]: recompress --force onto `old` is ended by the signal in the middle.
ended()
{
	ended_by=$1
	shift
	echo "of another day" >old
	bounded 60 "$@" "$MEMTRACK" recompress --force --codec zstd --level 19 --keep-frames large old \
		>out 2>err &
	if ! wait_for 10 sh -c 'ls -A | grep "^\.memtrack-"'; then
		tap_fail "$ended_by: the new file is made beside the old one" err
		kill $!
		return
	fi
	tap_equal "$ended_by: the old file is there while the new one is made" "of another day" "$(cat old)"
	kill -"$ended_by" "$(ls -A | sed -n 's/^\.memtrack-\([0-9]*\)-.*/\1/p')"
	wait $!
	tap_equal "$ended_by: the old file is as it was" "of another day" "$(cat old)"
}

for signal in INT TERM HUP; do
	# A shell's background commands ignore SIGINT: given back here.
	ended $signal env --default-signal=INT
	tap_equal "$signal: nothing is left beside it" 0 "$(left)"
done
ended KILL
rm -f .memtrack-*

echo "of another day" >old
(ulimit -f 20 && exec "$MEMTRACK" recompress --force "$GOLDEN/frames.msgpack" old) >out 2>err
tap_equal "no room: our own failure, said" "1 1" "$? $(grep -c 'File too large' err)"
tap_equal "no room: the old file is as it was" "of another day" "$(cat old)"
tap_equal "no room: nothing is left" 0 "$(left)"
"$MEMTRACK" recompress --force "$GOLDEN/corrupt_middle.msgpack" old >out 2>err
tap_equal "a damaged input: the old file is as it was" "3 of another day" "$? $(cat old)"

for command in recompress repair; do
	"$MEMTRACK" $command "$GOLDEN/frames.msgpack" wanted >out
	tap_equal "$command: a new file's mode is the umask's" "$(printf %o $((0666 & ~$(umask))))" "$(stat -c %a wanted)"
	echo "of another day" >old
	chmod 640 old
	ln -s old link
	gives "$command: through a link" 0 "$MEMTRACK" $command --force "$GOLDEN/frames.msgpack" link
	tap_equal "$command: the link leads there still" old "$(readlink link)"
	tap_check "$command: what it leads to is new" cmp wanted old
	tap_equal "$command: its mode is kept" 640 "$(stat -c %a old)"
	rm link
	ln -s nowhere link
	gives "$command: a link that leads nowhere" 1 "$MEMTRACK" $command --force "$GOLDEN/frames.msgpack" link
	tap_check "$command: it is said" grep -q 'leads nowhere' err
	tap_check "$command: nothing was made through it" test ! -e nowhere
	rm link
	"$MEMTRACK" $command "$GOLDEN/frames.msgpack" - 2>err | cat >got
	tap_check "$command: to standard output, and nothing else goes there" cmp wanted got
	tap_check "$command: what it says goes to standard error" test -s err
	"$MEMTRACK" $command "$GOLDEN/frames.msgpack" /dev/stdout >got 2>err
	tap_check "$command: to /dev/stdout, a file" cmp wanted got
	"$MEMTRACK" $command "$GOLDEN/frames.msgpack" /dev/stdout 2>err | cat >got
	tap_check "$command: to /dev/stdout, a pipe" cmp wanted got
	mkfifo pipe
	bounded 20 cat pipe >got &
	gives "$command: into a pipe with a name" 0 "$MEMTRACK" $command "$GOLDEN/frames.msgpack" pipe
	wait $!
	tap_check "$command: it arrives" cmp wanted got
	tap_check "$command: the pipe is still there" test -p pipe
	gives "$command: into a device" 0 "$MEMTRACK" $command "$GOLDEN/frames.msgpack" /dev/null
	tap_check "$command: the device is still there" test -c /dev/null
	gives "$command: over its input" 1 "$MEMTRACK" $command --force wanted ./wanted
	tap_equal "$command: nothing is left" 0 "$(left)"
	rm -f pipe wanted old
done

# One that a recorder writes is not taken from under it.
if test -n "$LAUNCHER"; then
	"$LAUNCHER" -q -o running -- "$TRACKED_SH" -c ': >ready; until test -e go; do sleep 0.01; done' &
	wait_for 20 test -e ready
	gives "a file that is being recorded" 1 "$MEMTRACK" recompress --force "$GOLDEN/frames.msgpack" running
	: >go
	wait $!
	"$MEMTRACK" verify running >out 2>&1
	tap_equal "a file that is being recorded: is the recorder's" 0 $?
fi
tap_done
