# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 2: children that get a fresh environment are tracked all the same, or named as untracked.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
blocks=$PROGRAMS/blocks
start=$PROGRAMS/starter

# seen TEXT COMMAND...: 1000 blocks of 12345 bytes are in the artifact.
seen()
{
	seen_text=$1
	shift
	tracked "$seen_text" "$@"
	tap_equal "$seen_text: every block is there" 1000 "$(count_size run 12345)"
}

seen "env -i" env -i "$blocks" 1000 12345
for how in posix_spawn posix_spawnp vfork; do
	seen "a child by $how with two variables" "$start" $how 0 1 "$blocks" 1000 12345
done
for how in bare execvpe execle fexecve execveat; do
	seen "exec ($how) with two variables" "$start" $how 0 1 "$blocks" 1000 12345
done
for how in execl execlp execvp; do
	seen "exec ($how) with an environment that was cleared" \
		sh -c 'exec env -i "$@"' sh "$start" $how 0 1 "$blocks" 1000 12345
done
seen "exec with no environment at all" "$start" null 0 1 "$blocks" 1000 12345
seen "a shell that unsets LD_PRELOAD" sh -c 'unset LD_PRELOAD; "$1" 1000 12345' sh "$blocks"
seen "python3 subprocess with its own env" "$PYTHON" -c 'import subprocess, sys
subprocess.run(sys.argv[1:], env={"A": "b"}, check=True)' "$blocks" 1000 12345

tracked "what the program sees of it" env -i A=b env
tap_equal "the environment is as given but for what brings us back" "A=b" \
	"$(grep -v -e '^LD_PRELOAD=' -e '^MEMTRACK_' "$WORK/out")"

# What just fits into the kernel's limit is started, then without us: prints how much that is, by exec and
# by posix_spawn, with a fresh environment and with the one there is.
cat >"$WORK/fits.py" <<'END'
import errno, os, sys
def fits(spawn, environment, size):
    given = dict(environment, A='y' * size)
    arguments = ['true'] + ['x' * 100000] * ((limit - 120000) // 100010)
    if spawn:
        try:
            pid = os.posix_spawn('/bin/true', arguments, given)
        except OSError as error:
            assert error.errno == errno.E2BIG
            return False
    else:
        pid = os.fork()
        if pid == 0:
            try:
                os.execve('/bin/true', arguments, given)
            except OSError as error:
                os._exit(9 if error.errno == errno.E2BIG else 8)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, 9)
    return status == 0
limit = int(sys.argv[1])
for name in ('fresh', 'own'):
    environment = {} if name == 'fresh' else os.environ
    for spawn in (False, True):
        low, high = 1000, 130000
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(spawn, environment, middle) else (low, middle)
        print(name, spawn, low)
END
# A quarter of the stack's limit is for arguments and environment.
fits() { sh -c 'ulimit -s 2048; exec "$@"' sh "$@" "$PYTHON" "$WORK/fits.py" 524288; }
fits env >"$WORK/fits" 2>&1
rm -f "$WORK/run"
fits "$LAUNCHER" -q -o "$WORK/run" -- >"$WORK/out" 2>&1
tap_equal "what just fits into the limit is started" "0 $(cat "$WORK/fits")" "$? $(cat "$WORK/out")"
verified "what just fits into the limit" run

# named TEXT COMMAND...: it is left alone, and said to be.
named()
{
	named_text=$1
	shift
	rm -f "$WORK/run"
	bounded 60 "$LAUNCHER" $named_options -o "$WORK/run" -- "$@" </dev/null >"$WORK/out" 2>"$WORK/err"
	tap_equal "$named_text: ends as itself" 0 $?
	tap_equal "$named_text: the child is left alone" 0 "$(count_size run 12345)"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	if grep -q "processes (told by the programs)" "$WORK/stat"; then
		tap_check "$named_text: that nobody knows is said" grep -q "untracked: not known" "$WORK/stat"
	else
		tap_check "$named_text: stderr names it" grep -q "untracked.*blocks" "$WORK/err"
		# perf does not tell the reason.
		why=environment
		! grep -q "processes perf" "$WORK/stat" || why='[a-z]*'
		tap_check "$named_text: stat names it, and why" grep -q "blocks ($why)" "$WORK/stat"
	fi
}

named_options=
named "the bare system call" "$start" raw 0 1 "$blocks" 1000 12345
named_options=--no-follow-env
named "with --no-follow-env" env -i "$blocks" 1000 12345
tap_done
