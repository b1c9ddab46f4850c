# SPDX-License-Identifier: MIT OR Apache-2.0
# Each call of the sidecar that can fail, fails once: allocations, files, sockets, threads, timers;
# and memory is short for a while, or for good. Then the run is as good as without, or what is wrong
# is said; the command's status is its own wherever it was started; nothing hangs or crashes; the
# artifact is absent or can be read, what is not in it is said, and nothing in it contradicts itself.
# A sample here, with MT_LONG=1 each call from each place that calls it.
. "$MT_SRCDIR/tests/e2e/faults_lib.sh"

# record CALL N: runs the command with the N-th CALL of the sidecar failing; RECORD_OPTIONS are more
# options for it, RECORD_ENVIRONMENT is more environment, both split at blanks.
record()
{
	rm -f "$PLACE/run" "$PLACE/started"
	env ${RECORD_ENVIRONMENT:-} LD_PRELOAD="$FAULT" MT_FAULT_IN=memtrack-sidecar MT_FAULT_CALL="$1" \
		MT_FAULT_NTH="$2" MT_FAULT_COUNTS="$PLACE/counts" timeout --foreground -k 5 20 \
		"$SIDECAR" "--library=$LIBRARY" ${RECORD_OPTIONS:-} -o "$PLACE/run" -- \
		"$TRACKED_SH" -c "$SCRIPT" sh "$PROGRAMS/blocks" "$PLACE/started" \
		>"$WORK/out" 2>"$WORK/err" </dev/null
}

record_fails()
{
	record "$1" "$2"
	judge $?
}

# records HOW [FEW]: without a fault, then each call.
records()
{
	measure record
	status=$?
	tap_equal "$1, without a fault: all is well" "7;" "$status;$(judge $status)"
	each "$1" record_fails "${2:-}"
}

if ! cannot_emulate "record with the kernel" "emulated programs have no eBPF and no perf"; then
	records record
	RECORD_OPTIONS=--bpf=basic
	records "record with perf" few
fi
RECORD_OPTIONS=--bpf=off
records "record without the kernel" few
# Some file systems tell of a full disk only then.
mkdir -p "$WORK/closed"
PLACE=$WORK/closed
RECORD_ENVIRONMENT="MT_FAULT_FILE=$PLACE/run"
record none 0
record close "$(sed -n 's/^close //p' "$PLACE/counts")"
tap_equal "the artifact's close fails: the status is the command's, and it is said" "7 1" \
	"$? $(grep -c '^memtrack: .*Input/output error' "$WORK/err")"
RECORD_ENVIRONMENT=
PLACE=$WORK
RECORD_OPTIONS=--bpf=basic
cannot_emulate "record, memory to be short of" "all takes longer than the waits that are tried" || shortages record
RECORD_OPTIONS=

if cannot_emulate "record for who called sudo" "only one user exists in the tests' namespace"; then
	:
elif test "$(id -u)" -eq 0; then
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
	CALLS='setgroups|setres[ug]id|getpwuid|getgrouplist|lchown|asprintf'
	records "record for who called sudo" few
	CALLS=.*
else
	tap_skip "record for who called sudo" "needs root to act as sudo does"
fi

tap_done
