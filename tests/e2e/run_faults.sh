# SPDX-License-Identifier: MIT OR Apache-2.0
# Each call of the sidecar and of memtrack that can fail, fails once: allocations, files, sockets,
# threads, timers. Then the run is as good as without, or what is wrong is said; the command's status
# is its own wherever it was started; nothing hangs or crashes; the artifact is absent or can be read,
# what is not in it is said, and nothing in it contradicts itself. A sample here, every call with
# MT_LONG=1. MT_FAULT_ONLY=REGEX: only calls of such names.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
test -z "${MT_ASAN:-}" || tap_skip_all "the sanitizers have these functions for themselves"
FAULT=$PROGRAMS/.libs/libfault.so
LIBRARY=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
SIDECAR=$MT_BUILDDIR/memtrack-sidecar
test ! -x "$MT_BUILDDIR/.libs/memtrack-sidecar" || SIDECAR=$MT_BUILDDIR/.libs/memtrack-sidecar

# numbers COUNT [FEW]: which calls of COUNT are let fail.
numbers()
{
	if test "$(long 0 1)" = 1 || test "$1" -le 2; then
		seq 1 "$1"
	elif test -n "${2:-}"; then
		printf '%s\n' 1 "$1"
	else
		printf '%s\n' 1 $(($1 / 3)) $(($1 * 2 / 3)) "$1" | sort -nu
	fi
}

# record CALL N: runs the command with the N-th CALL of the sidecar failing; RECORD_OPTIONS are more
# options for it, RECORD_ENVIRONMENT is more environment, both split at blanks.
record()
{
	rm -f "$PLACE/run" "$PLACE/started"
	env ${RECORD_ENVIRONMENT:-} LD_PRELOAD="$FAULT" MT_FAULT_IN=memtrack-sidecar MT_FAULT_CALL="$1" \
		MT_FAULT_NTH="$2" MT_FAULT_COUNTS="$PLACE/counts" timeout --foreground -k 5 20 \
		"$SIDECAR" "--library=$LIBRARY" ${RECORD_OPTIONS:-} -o "$PLACE/run" -- \
		sh -c '"$1" 100 444; : >"$2"; exit 7' sh "$PROGRAMS/blocks" "$PLACE/started" \
		>"$WORK/out" 2>"$WORK/err" </dev/null
}

# judge STATUS: prints what is wrong with the run, if anything is.
judge()
{
	if test -e "$PLACE/started"; then
		test "$1" -eq 7 || echo "status $1 instead of the command's"
	else
		case $1 in
		125 | 126 | 127) ;;
		*) echo "the command was not started, status $1" ;;
		esac
		grep -q '^memtrack: ' "$WORK/err" || echo "the command was not started, nobody says why"
	fi
	test ! -s "$WORK/out" || echo "something on stdout"
	if test -s "$PLACE/run"; then
		"$MEMTRACK" verify "$PLACE/run" >"$WORK/verify" 2>&1
		test $? -le 3 || echo "unreadable"
		grep '^contradictions: ' "$WORK/verify" | grep -v 'none'
		got=$("$MEMTRACK" dump "$PLACE/run" 2>/dev/null | grep -c '"size":444[,}]')
	else
		got=0
	fi
	test ! -e "$PLACE/started" || test "$got" -eq 100 ||
		grep -qE '[1-9][0-9]* lost|lost [1-9]|is lost|untracked: |incomplete|cannot|no memory' "$WORK/err" ||
		echo "$got of 100 blocks, and nobody says so"
}

# each PROGRAM COUNTS FUNCTION [FEW]: calls FUNCTION CALL N for the calls that were counted, a case for
# each CALL.
each()
{
	cp "$2" "$WORK/all"
	while read -r call count; do
		echo "$call" | grep -xE "${MT_FAULT_ONLY:-.*}" | grep -qxE "$calls" || continue
		bad=
		for n in $(numbers "$count" "${4:-}"); do
			said=$("$3" "$call" "$n" | tr '\n' ';')
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

# records HOW [FEW]: without a fault, then each call.
records()
{
	record none 0
	status=$?
	tap_equal "$1, without a fault: all is well" "7;" "$status;$(judge $status)"
	each "$1" "$PLACE/counts" record_fails "${2:-}"
}

calls=.*
PLACE=$WORK
records record
cp "$WORK/run" "$WORK/whole"
RECORD_OPTIONS=--bpf=basic
records "record with perf" few
RECORD_OPTIONS=--bpf=off
records "record without the kernel" few
RECORD_OPTIONS=
if test "$(id -u)" -eq 0; then
	user=65534
	PLACE=$WORK/theirs
	chmod 711 "$WORK"
	mkdir "$PLACE"
	chown $user "$PLACE"
	# The build may lie where another user cannot read it.
	cp "$SIDECAR" "$LIBRARY" "$FAULT" "$PROGRAMS/blocks" "$PLACE"
	SIDECAR=$PLACE/${SIDECAR##*/} LIBRARY=$PLACE/${LIBRARY##*/} FAULT=$PLACE/${FAULT##*/}
	PROGRAMS=$PLACE
	RECORD_ENVIRONMENT="SUDO_UID=$user SUDO_GID=$user"
	# Of memory there is none to be short of: glibc itself aborts when it looks up a user then.
	calls='setgroups|setres[ug]id|getpwuid|getgrouplist|lchown|asprintf'
	records "record for who called sudo" few
	calls=.*
else
	tap_skip "record for who called sudo" "needs root to act as sudo does"
fi

# Each command of memtrack, what it prints and what it writes.
READER=$MEMTRACK
test ! -x "$MT_BUILDDIR/.libs/memtrack" || READER=$MT_BUILDDIR/.libs/memtrack

cd "$WORK" || exit 1

# read_with CALL N: COMMAND with the N-th CALL failing.
read_with()
{
	rm -f written
	LD_PRELOAD=$FAULT MT_FAULT_IN=memtrack MT_FAULT_CALL=$1 MT_FAULT_NTH=$2 \
		MT_FAULT_COUNTS=counts bounded 20 "$READER" $COMMAND >out 2>err </dev/null
}

# take_result FILE: what the command gave, without what may be put in another way: of a file, its events.
take_result()
{
	if test "$RESULT" = out; then
		cp out "$1"
	elif test -e "$RESULT"; then
		"$MEMTRACK" dump "$RESULT" >"$1"
	else
		: >"$1"
	fi
}

read_fails()
{
	read_with "$1" "$2"
	status=$?
	test "$status" -le 3 || echo "status $status"
	take_result got
	cmp -s got good && return
	test "$status" -ge 1 || echo "status $status, and something else came of it"
	test -s err || echo "nothing said"
	test ! -e written || "$MEMTRACK" verify written >/dev/null 2>&1 ||
		echo "left something broken"
}

# COMMAND and the file that holds its result
while read -r RESULT COMMAND; do
	read_with none 0
	tap_equal "$COMMAND, without a fault: all is well" 0 $?
	take_result good
	test -s good || tap_fail "$COMMAND: a result to compare with"
	each "$COMMAND" counts read_fails few
done <<EOF
out stat whole
out stat --json whole
out dump whole
out verify whole
out modules whole
written repair whole written
written recompress whole written
EOF
tap_done
