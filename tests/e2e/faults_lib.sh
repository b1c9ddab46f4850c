# SPDX-License-Identifier: MIT OR Apache-2.0
# What the tests of failing calls share: which calls of a program are let fail, and whether what
# became of a recording is as it has to be. MT_FAULT_ONLY=REGEX: only calls of such names.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
test -z "${MT_ASAN:-}" || tap_skip_all "the sanitizers have these functions for themselves"
FAULT=$PROGRAMS/.libs/libfault.so
LIBRARY=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
SIDECAR=$MT_BUILDDIR/memtrack-sidecar
test ! -x "$MT_BUILDDIR/.libs/memtrack-sidecar" || SIDECAR=$MT_BUILDDIR/.libs/memtrack-sidecar
PLACE=$WORK
CALLS=.*
# What is recorded: 100 blocks of 444 bytes are taken, then the second argument is made.
SCRIPT='"$1" 100 444; : >"$2"; exit 7'
LONGER_SCRIPT='for i in 1 2 3 4 5; do "$1" 20 444 & done; wait; "$1" 300000 555; : >"$2"; exit 7'

# numbers COUNT [few|one]: which calls of COUNT are let fail.
numbers()
{
	if test "$(long 0 1)" = 1 || test "$1" -le 2; then
		seq 1 "$1"
	elif test "${2:-}" = one; then
		echo $(($1 * 2 / 3))
	elif test -n "${2:-}"; then
		printf '%s\n' 1 "$1"
	else
		printf '%s\n' 1 $(($1 / 3)) $(($1 * 2 / 3)) "$1" | sort -nu
	fi
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
		grep -qE '[1-9][0-9]* lost|lost [1-9]|is lost|untracked|incomplete|cannot|no memory' "$WORK/err" ||
		echo "$got of 100 blocks, and nobody says so"
}

# each PROGRAM COUNTS FUNCTION [FEW]: calls FUNCTION CALL N for the calls that were counted, a case for
# each CALL.
each()
{
	cp "$2" "$WORK/all"
	while read -r call count; do
		test "$call" != memory || continue # it is all of them
		echo "$call" | grep -xE "${MT_FAULT_ONLY:-.*}" | grep -qxE "$CALLS" || continue
		bad=
		for n in $(numbers "$count" "${4:-}"); do
			said=$("$3" "$call" "$n" | tr '\n' ';')
			test -z "$said" || bad="$bad $n: $said"
		done
		tap_equal "$1: $call fails, each of $count" "" "$bad"
	done <"$WORK/all"
}

# whole: prints what is missing of a run that was started.
whole()
{
	test ! -e "$PLACE/started" || test "$got" -eq 100 || echo "$got of 100 blocks"
	test ! -e "$PLACE/started" || grep -q ', 0 lost' "$WORK/err" || echo "something was lost"
}

# shortages FUNCTION: FUNCTION records while no memory can be had, from one of the calls on: for less
# time than the sidecar waits for some, which costs nothing; for more; and for good.
shortages()
{
	SCRIPT=$LONGER_SCRIPT
	"$1" none 0
	shortage_status=$?
	tap_equal "$1, memory to be short of: all is well" "7;" "$shortage_status;$(judge $shortage_status)"
	shortage_calls=$(sed -n 's/^memory //p' "$PLACE/counts")
	environment=${RECORD_ENVIRONMENT:-}
	for lasts in MT_FAULT_MS=1000 $(long '' MT_FAULT_MS=3000) MT_FAULT_SPAN=1000000000; do
		bad=
		RECORD_ENVIRONMENT="$environment $lasts"
		for n in $(seq "$shortage_calls" -$((shortage_calls / $(long 3 60) + 1)) 1); do
			said=$({
				"$1_fails" memory "$n"
				test $lasts != MT_FAULT_MS=1000 || whole
			} | tr '\n' ';')
			test -z "$said" || bad="$bad $n: $said"
		done
		tap_equal "$1, no memory from one of $shortage_calls calls on, $lasts" "" "$bad"
	done
	RECORD_ENVIRONMENT=$environment
}
