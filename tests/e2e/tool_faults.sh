# SPDX-License-Identifier: MIT OR Apache-2.0
# Each call of memtrack that can fail, fails once, in each command with each option: it gives what it
# gives without, or says what is wrong, and leaves nothing broken behind. A sample here, with MT_LONG=1
# each call from each place that calls it.
. "$MT_SRCDIR/tests/e2e/faults_lib.sh"

READER=$MEMTRACK
test ! -x "$MT_BUILDDIR/.libs/memtrack" || READER=$MT_BUILDDIR/.libs/memtrack

cd "$WORK" || exit 1
"$LAUNCHER" -q --bpf=off -o whole -- "$TRACKED_SH" -c '"$1" 100 444; "$1" 70000 32; exit 7' sh "$PROGRAMS/blocks" </dev/null
head -c $(($(wc -c <whole) * 2 / 3)) whole >cut
cp "$MT_SRCDIR/tests/golden/corrupt_middle.msgpack" damaged
pid=$("$MEMTRACK" dump --type Exec whole | sed -n '1s/.*"pid":\([0-9]*\).*/\1/p')

# read_with CALL N: COMMAND with the N-th CALL failing.
read_with()
{
	rm -f written
	case $COMMAND in
	*--force*) cp cut written ;;
	esac
	LD_PRELOAD=$FAULT MT_FAULT_IN=memtrack MT_FAULT_CALL=$1 MT_FAULT_NTH=$2 \
		MT_FAULT_COUNTS=counts bounded 20 "$READER" $COMMAND >out 2>err <"$INPUT"
}

prepare_job()
{
	cd "$WORK" && ln -s ../whole ../cut ../damaged ../good ../good.err .
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
	! cmp -s err good.err || echo "nothing more is said than without the fault"
	test ! -e written || cmp -s written cut || "$MEMTRACK" verify written >/dev/null 2>&1 ||
		echo "left something broken"
}

# Standard input, how it ends, the file that holds the result, and the command.
while read -r INPUT wanted RESULT COMMAND; do
	measure read_with
	tap_equal "$COMMAND, without a fault: ends with $wanted" "$wanted" $?
	take_result good
	cp err good.err
	# What is short of memory is not damaged: nothing may be cut off for that.
	case $COMMAND in
	*cut*) which=all ;;
	*) which=one ;;
	esac
	test -s good || tap_fail "$COMMAND: a result to compare with"
	each "$COMMAND" read_fails "$which"
done <<EOF
/dev/null 0 out stat whole
/dev/null 0 out stat --json --all --wait --no-hints --threads 3 whole
whole 0 out stat -
/dev/null 3 out stat --keep-going damaged
/dev/null 0 out dump whole
/dev/null 0 out dump --type Malloc,Exec --from 1us --to 1000s --no-hints whole
whole 0 out dump --pid 1,2,$pid --tid $pid --type Exit,Fork -
/dev/null 3 out dump --keep-going damaged
/dev/null 0 out verify whole
/dev/null 1 out verify --json --wait --require-complete --no-hints --limit 3 --threads 1 whole
/dev/null 3 out verify damaged
/dev/null 0 out modules whole
/dev/null 0 out modules --table --no-hints whole
/dev/null 3 out modules --keep-going damaged
/dev/null 0 written repair whole written
/dev/null 0 written repair --force damaged written
/dev/null 0 written repair cut written
/dev/null 0 written recompress whole written
/dev/null 0 written recompress --codec zstd --level 3 --no-hints --force whole written
EOF
tap_done
