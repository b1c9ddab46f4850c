# SPDX-License-Identifier: MIT OR Apache-2.0
# What the end-to-end tests share. Sourced by them: TAP, the built parts, a folder to work in, runs
# that end by a deadline, and the comparison with the independent counter.
. "$MT_SRCDIR/tests/tap.sh"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/mt-e2e.XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' HUP INT TERM

for variable in $(env | sed -n 's/^\(MEMTRACK_[A-Z_]*\)=.*/\1/p'); do
	unset "$variable"
done
unset LD_PRELOAD

E2E=$MT_SRCDIR/tests/e2e
PROGRAMS=$MT_BUILDDIR/tests/e2e
COUNTER=$PROGRAMS/.libs/libcounter.so
COUNTER_BYTES=2097408
PYTHON=/usr/bin/python3

# find_built NAME: a program of ours as make leaves it.
find_built()
{
	for place in "" preload/ sidecar/ tools/; do
		if test -x "$MT_BUILDDIR/$place$1"; then
			echo "$MT_BUILDDIR/$place$1"
			return
		fi
	done
}

LAUNCHER=$(find_built memtrack-preload)
MEMTRACK=$(find_built memtrack)

need_product()
{
	test -n "$LAUNCHER" && test -n "$MEMTRACK" || tap_skip_all "memtrack-preload or memtrack was not built"
}

need_python()
{
	"$PYTHON" -c 'import msgpack' 2>/dev/null || tap_skip_all "python3-msgpack is not installed"
	command -v zstd >/dev/null || tap_skip_all "zstd is not installed"
}

# need_command NAME [PACKAGE]
need_command()
{
	command -v "$1" >/dev/null || tap_skip_all "$1 is not installed (package ${2:-$1})"
}

# same_machine FILE: whether it is for the machine that our library was built for.
same_machine()
{
	for machine_file in "$1" "$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so"; do
		od -An -v -tx1 -j4 -N1 "$machine_file"
		od -An -v -tx1 -j18 -N2 "$machine_file"
	done 2>/dev/null | paste -sd' ' | awk '{ exit !(NF == 6 && $1 $2 $3 == $4 $5 $6) }'
}

# find_library PATTERN: where the linker would find it.
find_library()
{
	for library_folder in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /usr/local/lib; do
		for library_file in "$library_folder"/$1; do
			if test -e "$library_file" && same_machine "$library_file"; then
				echo "$library_file"
				return
			fi
		done
	done
}

# cannot_emulate NAME REASON: under an emulator (MT_EMULATOR, its name) the case is skipped, and the
# reason given; elsewhere it fails, and the case is to be run.
cannot_emulate()
{
	test -n "${MT_EMULATOR:-}" && tap_skip "$1" "$MT_EMULATOR: $2"
}

# A shell for scripts that are tracked. Under qemu-user one that starts its programs by fork: its
# vfork is a fork too, but one that nobody can see (docs/limits.md).
TRACKED_SH=sh
test -z "${MT_EMULATOR:-}" || TRACKED_SH=bash

# long SHORT LONG: the second in make check-long, else the first.
long()
{
	if test -n "${MT_LONG:-}" && test "$MT_LONG" != 0; then
		echo "$2"
	else
		echo "$1"
	fi
}

# bounded SECONDS COMMAND...: 124 when it takes longer. The command keeps the terminal's group.
bounded()
{
	timeout --foreground -k 5 "$@"
}

# wait_for SECONDS COMMAND...: until the command succeeds; fails when it does not in time.
wait_for()
{
	wait_end=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		test "$(date +%s)" -lt "$wait_end" || return 1
		sleep 0.01
	done
}

# track NAME COMMAND...: tracks it into $WORK/NAME; its status is the command's. TRACK_OPTIONS are
# options for the launcher, split at blanks.
track()
{
	track_file=$WORK/$1
	shift
	rm -f "$track_file"
	bounded "$(long 60 300)" "$LAUNCHER" -q ${TRACK_OPTIONS:-} -o "$track_file" -- "$@"
}

# dump NAME [OPTION...]
dump()
{
	dump_file=$WORK/$1
	shift
	"$MEMTRACK" dump "$@" "$dump_file"
}

# built_with_bpf: not --disable-bpf.
built_with_bpf()
{
	test "$MT_HAVE_BPF" = 1
}

# lines_said FILE: lines but for the one that says what is not recorded for lack of eBPF.
lines_said()
{
	grep -vc '^memtrack: not recorded without' "$1"
}

# count_size NAME SIZE: allocations of that size in the artifact.
count_size()
{
	dump "$1" | grep -c "\"type\":\"[A-Za-z]*\",\(\"old_addr\":[0-9]*,\)\?\"size\":${2}[,}]"
}

# count_type NAME TYPE
count_type()
{
	dump "$1" | grep -c "\"type\":\"$2\""
}

# lost NAME: records that were lost, of all causes.
lost()
{
	"$MEMTRACK" stat --json "$WORK/$1" | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["lost"])'
}

# is_clean NAME: memtrack verify finds nothing, and the recorder flagged nothing: it may have taken for
# wrong what a reader of the file does not.
is_clean()
{
	"$MEMTRACK" verify "$WORK/$1" >"$WORK/verified" 2>&1
	clean_status=$?
	cat "$WORK/verified"
	test "$clean_status" -eq 0 && ! grep -q '^flagged by the recorder' "$WORK/verified"
}

# verified TEXT NAME: the artifact is clean.
verified()
{
	tap_check "$1: verify is clean" is_clean "$2"
}

# tracked TEXT COMMAND...: tracks into $WORK/run; ok when it ends with WANT_STATUS (0) and the
# artifact is clean.
tracked()
{
	tracked_text=$1
	shift
	track run "$@" </dev/null >"$WORK/out" 2>"$WORK/err"
	tracked_status=$?
	if test "$tracked_status" -ne "${WANT_STATUS:-0}"; then
		tap_fail "$tracked_text: ends with ${WANT_STATUS:-0}, not $tracked_status" "$WORK/err" "$WORK/out"
	else
		tap_ok "$tracked_text: ends with ${WANT_STATUS:-0}"
	fi
	verified "$tracked_text" run
}

# run_counted COMMAND...: runs it with the counter behind ours, and COUNTED_PRELOAD behind that. The
# shell in between is the root image, which the counter does not see.
run_counted()
{
	rm -f "$WORK/counts"
	truncate -s "$COUNTER_BYTES" "$WORK/counts" || exit 1
	track counted sh -c 'LD_PRELOAD=$LD_PRELOAD:$2${3:+:$3}
		MT_COUNTER=$1
		export LD_PRELOAD MT_COUNTER
		shift 3
		exec "$@"' sh "$WORK/counts" "$COUNTER" "${COUNTED_PRELOAD:-}" "$@" \
		</dev/null >"$WORK/out" 2>"$WORK/err"
}

# counted TEXT COMMAND...: three cases: it ends as by itself, the artifact equals the independent
# count, the replay is clean. COMPARE_OPTIONS go to compare.py.
counted()
{
	counted_text=$1
	shift
	run_counted "$@"
	counted_status=$?
	if test "$counted_status" -ne "${WANT_STATUS:-0}"; then
		tap_fail "$counted_text: ends with ${WANT_STATUS:-0}, not $counted_status" "$WORK/err" "$WORK/out"
	else
		tap_ok "$counted_text: ends with ${WANT_STATUS:-0}"
	fi
	if "$PYTHON" "$E2E/compare.py" --uncounted-root 1 ${COMPARE_OPTIONS:-} "$WORK/counted" "$WORK/counts" \
		>"$WORK/difference" 2>&1; then
		tap_ok "$counted_text: equals the independent count ($(head -n 1 "$WORK/difference"))"
	else
		tap_fail "$counted_text: equals the independent count" "$WORK/difference" "$WORK/err"
	fi
	verified "$counted_text" counted
}

# make_value NAME: a variable of the Makefile, such as CC.
make_value()
{
	sed -n "s/^$1 = //p" "$MT_BUILDDIR/Makefile" | head -n 1
}
