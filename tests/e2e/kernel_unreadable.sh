# SPDX-License-Identifier: MIT OR Apache-2.0
# Kernel events of perf without root: of a program that its user may execute and not read the kernel
# takes the events away at its exec, and says so as if the process had ended. It goes on and is
# recorded, and so is what it forks and executes, whether that can be read or not; the end is told
# when it comes. In manual use as well.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_command setpriv util-linux
test "$(id -u)" -eq 0 || tap_skip_all "needs root, to be another user"
chmod 755 "$WORK"
mkdir "$WORK/theirs" "$WORK/inst" "$WORK/inst/bin" "$WORK/inst/libexec" "$WORK/inst/lib" \
	"$WORK/inst/libexec/memtrack" "$WORK/inst/lib/memtrack"
chown 65534 "$WORK/theirs"
cp "$LAUNCHER" "$WORK/inst/bin"
cp "$(find_built memtrack-sidecar)" "$WORK/inst/libexec/memtrack"
cp "$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so" "$WORK/inst/lib/memtrack"
for program in blocks starter forker vforker; do
	cp "$PROGRAMS/$program" "$WORK/$program"
	cp "$PROGRAMS/$program" "$WORK/closed_$program"
	chmod 755 "$WORK/$program"
	chmod 711 "$WORK/closed_$program"
done
cp "$(command -v bash)" "$WORK/closed_bash"
chmod 111 "$WORK/closed_bash"

as_them()
{
	bounded "$(long 60 300)" setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# recorded TEXT FORKS EXECS WANTED COMMAND...: it ends well and clean, each process has its Exit, and
# WANTED, "SIZE:COUNT ...", is what was allocated.
recorded()
{
	text=$1
	forks=$2
	execs=$3
	wanted=$4
	shift 4
	rm -f "$WORK/theirs/run"
	as_them "$WORK/inst/bin/memtrack-preload" $options -o "$WORK/theirs/run" -- "$@" >"$WORK/out" 2>"$WORK/err" </dev/null
	tap_verdict "$text: ends well" $? "$WORK/err" "$WORK/out"
	checked "$text"
}

# checked TEXT: what recorded() says of the artifact.
checked()
{
	mv "$WORK/theirs/run" "$WORK/run"
	verified "$1" run
	for pair in $wanted; do
		tap_equal "$1: allocations of ${pair%:*}" "${pair#*:}" "$(count_size run "${pair%:*}")"
	done
	tap_equal "$1: nothing is lost" 0 "$(lost run)"
	tap_equal "$1: forks, images, ends" "$forks $execs $((forks + 1))" \
		"$(count_type run Fork) $(count_type run Exec) $(count_type run Exit)"
}

options=
recorded "alone" 0 1 333:100 "$WORK/closed_blocks" 100 333
"$MEMTRACK" stat --json "$WORK/run" >"$WORK/stat"
if ! grep -q '"process": *"perf"' "$WORK/stat"; then
	tap_skip "the rest" "a user without privileges gets no perf events here"
	tap_done
fi
tap_check "images that it may have started and nobody saw are not said to be none" \
	grep -q 'untracked images: not known' "$WORK/err"
tap_check "nor is it said to be running" sh -c '! grep -q "still running" "$1"' sh "$WORK/err"
recorded "from a shell" 2 3 "333:100 334:100" sh -c '"$1/closed_blocks" 100 333; "$1/blocks" 100 334; exit' sh "$WORK"
for way in exec thread; do
	recorded "in a chain, by $way" 0 4 "441:10 442:20 443:30 444:40" "$WORK/starter" $way 10 441 "$WORK/closed_starter" \
		$way 20 442 "$WORK/starter" $way 30 443 "$WORK/closed_blocks" 40 444
done
recorded "two in a row, then one that can be read" 0 3 "442:20 443:30 444:40" "$WORK/closed_starter" exec 20 442 \
	"$WORK/closed_starter" exec 30 443 "$WORK/blocks" 40 444
recorded "forks" 40 1 "100001:2 100020:40" "$WORK/closed_forker" 20
recorded "a child by vfork" 1 2 "442:20 443:30" "$WORK/closed_starter" vfork 20 442 "$WORK/blocks" 30 443
a_shell()
{
	recorded "$1" 22 24 "10003:2 334:1000 335:1000 442:100 443:100" "$WORK/closed_bash" -c '
	for i in 1 2 3 4 5 6 7 8 9 10; do
		"$1/blocks" 100 334
		"$1/closed_blocks" 100 335 &
	done
	wait
	(:; :) | (:; "$1/blocks" 2 10003)
	exec "$1/closed_starter" exec 100 442 "$1/blocks" 100 443' bash "$WORK"
}
a_shell "a shell"
# The same without any kernel events, where this order of forks and hellos comes up as well.
options=--bpf=off
a_shell "a shell, without kernel events"
options=

# In manual use the sidecar ends with the last process, which here is one that perf lost sight of.
rm -f "$WORK/theirs/run"
as_them env LD_PRELOAD="$WORK/inst/lib/memtrack/libmemtrack-preload.so" MEMTRACK_OUTPUT="$WORK/theirs/run" sh -c '
	"$1/closed_bash" -c "sleep 0.5; exec \"\$1/closed_starter\" exec 10 445 \"\$1/blocks\" 20 446" bash "$1" &
	exec true' sh "$WORK" 2>"$WORK/err"
tap_verdict "manual use: ends well" $? "$WORK/err"
bounded 20 "$MEMTRACK" stat --wait "$WORK/theirs/run" >/dev/null
mv "$WORK/theirs/run" "$WORK/run"
verified "manual use" run
tap_equal "manual use: what it records after the others have ended" "10 20" "$(count_size run 445) $(count_size run 446)"
tap_done
