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

# So many faults are tried at a time: most of the time is waiting.
JOBS=$(long 2 3)
test -z "${MT_EMULATOR:-}" || JOBS=1

# numbers COUNT [few|one|all]: which calls of COUNT are let fail.
numbers()
{
	if test "$1" -le 2 || test "${2:-}" = all; then
		seq 1 "$1"
	elif test "$(long 0 1)" -eq 1; then
		printf '%s\n' 1 $((($1 + 1) / 2)) "$1" # of those from one site
	elif test "${2:-}" = one; then
		echo $(($1 * 2 / 3))
	elif test -n "${2:-}"; then
		printf '%s\n' 1 "$1"
	else
		printf '%s\n' 1 $(($1 / 3)) $(($1 * 2 / 3)) "$1" | sort -nu
	fi
}

# measure FUNCTION: FUNCTION runs without a fault; $PLACE/counts says which calls there were, one "CALL
# SITE COUNT" a line. For the full size that is by whom a function was called (fault_site.h), all that
# three runs met, since not each looks at /proc as often; else the site is "-", any.
measure()
{
	rm -f "$PLACE/counts" "$PLACE"/sites.*
	if test "$(long 0 1)" -eq 1; then
		for measured in 1 2 3; do
			MT_FAULT_SITES=$PLACE/sites.$measured
			export MT_FAULT_SITES
			"$1" none 0
			measure_status=$?
		done
		unset MT_FAULT_SITES
		awk '{ k = $1 " " $2; if ($3 > n[k]) n[k] = $3 } END { for (k in n) print k, n[k] }' \
			"$PLACE"/sites.* | sort >"$PLACE/met"
	else
		"$1" none 0
		measure_status=$?
		sed -n '/^memory /!s/ / - /p' "$PLACE/counts" >"$PLACE/met"
	fi
	return $measure_status
}

# prepare_job: in a job's own folder.
prepare_job()
{
	:
}

# run_jobs LIST FUNCTION: calls FUNCTION with the words of each line of LIST, JOBS at a time, each job
# in a WORK and PLACE of its own; $WORK/said gets the lines for which it printed something, with that.
run_jobs()
{
	rm -f "$WORK"/said*
	for job in $(seq 1 "$JOBS"); do
		rm -rf "$WORK/job$job" "$PLACE/job$job"
		mkdir -p "$WORK/job$job" "$PLACE/job$job"
		chown --reference="$PLACE" "$PLACE/job$job"
		(
			said_file=$WORK/said$job
			WORK=$WORK/job$job PLACE=$PLACE/job$job
			prepare_job
			while read -r line; do
				test -n "$line" || continue
				said=$("$2" $line </dev/null | tr '\n' ';')
				test -z "$said" || echo "$line: $said" >>"$said_file"
			done
		) <<-END &
			$(awk "NR % $JOBS == $job % $JOBS" "$1")
		END
	done
	wait
	cat "$WORK"/said* >"$WORK/said" 2>/dev/null
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

# fail_one CALL SITE N: calls EACH with the N-th CALL from SITE failing.
fail_one()
{
	MT_FAULT_SITE=${2#-}
	export MT_FAULT_SITE
	test -n "$MT_FAULT_SITE" || unset MT_FAULT_SITE
	"$EACH" "$1" "$3"
}

# each PROGRAM FUNCTION [FEW]: calls FUNCTION CALL N for the calls that were measured, a case for each
# CALL.
each()
{
	EACH=$2
	cp "$PLACE/met" "$WORK/all"
	while read -r call site count; do
		echo "$call" | grep -xE "${MT_FAULT_ONLY:-.*}" | grep -qxE "$CALLS" || continue
		for n in $(numbers "$count" "${3:-}"); do
			echo "$call $site $n"
		done
	done <"$WORK/all" >"$WORK/faults"
	run_jobs "$WORK/faults" fail_one
	cut -d' ' -f1 "$WORK/faults" | uniq -c >"$WORK/tried"
	while read -r count call; do
		tap_equal "$1: $call fails, $count times" "" "$(grep "^$call " "$WORK/said")"
	done <"$WORK/tried"
}

# whole: prints what is missing of a run that was started. With LD_PRELOAD alone it may say that memory was
# short for the sidecar's start.
whole()
{
	! grep -q '; the program runs untracked$' "$WORK/err" || return
	test ! -e "$PLACE/started" || test "$got" -eq 100 || echo "$got of 100 blocks"
	test ! -e "$PLACE/started" || grep -q ', 0 lost' "$WORK/err" || echo "something was lost"
}

# short_one LASTS N
short_one()
{
	RECORD_ENVIRONMENT="${RECORD_ENVIRONMENT:-} $1"
	"${EACH}_fails" memory "$2"
	test "$1" != MT_FAULT_MS=1000 || whole
}

# shortages FUNCTION: FUNCTION records while no memory can be had, from one of the calls on: for less
# time than the sidecar waits for some, which costs nothing; for more; and for good.
shortages()
{
	SCRIPT=$LONGER_SCRIPT EACH=$1
	"$1" none 0
	shortage_status=$?
	tap_equal "$1, memory to be short of: all is well" "7;" "$shortage_status;$(judge $shortage_status)"
	shortage_calls=$(sed -n 's/^memory //p' "$PLACE/counts")
	for lasts in MT_FAULT_MS=1000 $(long '' MT_FAULT_MS=3000) MT_FAULT_SPAN=1000000000; do
		seq "$shortage_calls" -$((shortage_calls / $(long 6 60) + 1)) 1 | sed "s/^/$lasts /" >"$WORK/faults"
		run_jobs "$WORK/faults" short_one
		tap_equal "$1, no memory from one of $shortage_calls calls on, $lasts" "" "$(cat "$WORK/said")"
	done
}
