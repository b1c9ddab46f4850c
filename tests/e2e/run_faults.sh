# SPDX-License-Identifier: MIT OR Apache-2.0
# Each call of the sidecar and of memtrack that can fail, fails once: allocations, files, sockets,
# threads, timers. Then the run is as good as without, or what is wrong is said; the command's status
# is its own wherever it was started; nothing hangs or crashes; the artifact is absent or can be read,
# and what is not in it is said. A sample here, every call with MT_LONG=1.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
test -z "${MT_ASAN:-}" || tap_skip_all "the sanitizers have these functions for themselves"
FAULT=$PROGRAMS/.libs/libfault.so
LIBRARY=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
SIDECAR=$MT_BUILDDIR/memtrack-sidecar
test ! -x "$MT_BUILDDIR/.libs/memtrack-sidecar" || SIDECAR=$MT_BUILDDIR/.libs/memtrack-sidecar

# numbers COUNT: which calls of COUNT are let fail.
numbers()
{
	if test "$(long 0 1)" = 1 || test "$1" -le 3; then
		seq 1 "$1"
	else
		printf '%s\n' 1 $(($1 / 3)) $(($1 * 2 / 3)) "$1" | sort -nu
	fi
}

# record CALL N: runs the command with the N-th CALL of the sidecar failing.
record()
{
	rm -f "$WORK/run" "$WORK/started"
	LD_PRELOAD=$FAULT MT_FAULT_IN=memtrack-sidecar MT_FAULT_CALL=$1 MT_FAULT_NTH=$2 \
		MT_FAULT_COUNTS=$WORK/counts bounded 20 "$SIDECAR" "--library=$LIBRARY" \
		-o "$WORK/run" -- sh -c '"$1" 100 444; : >"$2"; exit 7' sh "$PROGRAMS/blocks" \
		"$WORK/started" >"$WORK/out" 2>"$WORK/err" </dev/null
}

# judge STATUS: prints what is wrong with the run, if anything is.
judge()
{
	if test -e "$WORK/started"; then
		test "$1" -eq 7 || echo "status $1 instead of the command's"
	else
		case $1 in
		125 | 126 | 127) ;;
		*) echo "the command was not started, status $1" ;;
		esac
		grep -q '^memtrack: ' "$WORK/err" || echo "the command was not started, nobody says why"
	fi
	test ! -s "$WORK/out" || echo "something on stdout"
	if test -s "$WORK/run"; then
		"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1 || test $? -le 3 || echo "unreadable"
		got=$("$MEMTRACK" dump "$WORK/run" 2>/dev/null | grep -c '"size":444[,}]')
	else
		got=0
	fi
	test ! -e "$WORK/started" || test "$got" -eq 100 ||
		grep -qE '[1-9][0-9]* lost|lost [1-9]|untracked: |incomplete|cannot|no memory' "$WORK/err" ||
		echo "$got of 100 blocks, and nobody says so"
}

# each PROGRAM FUNCTION: calls FUNCTION CALL N for the calls that were counted, a case for each CALL.
each()
{
	cp "$WORK/counts" "$WORK/all"
	while read -r call count; do
		bad=
		for n in $(numbers "$count"); do
			said=$("$2" "$call" "$n" | tr '\n' ';')
			test -z "$said" || bad="$bad $n: $said"
		done
		tap_equal "$1: $call fails, each of $count" "" "$bad"
	done <"$WORK/all"
}

record_fails()
{
	record "$1" "$2"
	judge $?
}

read_fails()
{
	for command in stat dump verify; do
		LD_PRELOAD=$FAULT MT_FAULT_IN=memtrack MT_FAULT_CALL=$1 MT_FAULT_NTH=$2 \
			bounded 20 "$READER" $command "$WORK/whole" >"$WORK/out" 2>"$WORK/err"
		status=$?
		cmp -s "$WORK/out" "$WORK/good.$command" && continue
		test "$status" -ge 1 && test "$status" -le 3 || echo "$command: status $status"
		test -s "$WORK/err" || echo "$command: nothing said"
	done
}

record none 0
status=$?
tap_equal "without a fault: all is well" "7;" "$status;$(judge $status)"
cp "$WORK/run" "$WORK/whole"
each record record_fails

READER=$MEMTRACK
test ! -x "$MT_BUILDDIR/.libs/memtrack" || READER=$MT_BUILDDIR/.libs/memtrack
for command in stat dump verify; do
	"$READER" $command "$WORK/whole" >"$WORK/good.$command" 2>/dev/null
done
LD_PRELOAD=$FAULT MT_FAULT_IN=memtrack MT_FAULT_COUNTS=$WORK/counts "$READER" stat "$WORK/whole" \
	>/dev/null 2>&1
each read read_fails
tap_done
