# SPDX-License-Identifier: MIT OR Apache-2.0
# What run_faults.sh asks of a run under the launcher, of one that LD_PRELOAD alone began: each call of
# the sidecar fails once, memory is short for longer. The program runs as ever and is not kept
# waiting; whatever is not in the file is said, by the program or by its sidecar.
. "$MT_SRCDIR/tests/e2e/faults_lib.sh"

# The program starts this one as its sidecar. It leaves nothing open that the program waits for.
STARTED_SIDECAR=$WORK/sidecar
cat >"$STARTED_SIDECAR" <<'END'
#!/bin/sh
LD_PRELOAD=$MT_FAULT_LIBRARY timeout -k 5 30 "$MT_SIDECAR" "$@" &
eval "exec $4>&-"
wait $!
echo $? >"$MT_SIDECAR_ENDED"
END
chmod +x "$STARTED_SIDECAR"

# manual CALL N: runs the script with the N-th CALL of its sidecar failing.
manual()
{
	rm -f "$PLACE/run" "$PLACE/started" "$PLACE/ended"
	env ${RECORD_ENVIRONMENT:-} MT_FAULT_IN=memtrack-sidecar MT_FAULT_CALL="$1" MT_FAULT_NTH="$2" \
		MT_FAULT_COUNTS="$PLACE/counts" MT_FAULT_LIBRARY="$FAULT" MT_SIDECAR="$SIDECAR" \
		MT_SIDECAR_ENDED="$PLACE/ended" MEMTRACK_SIDECAR="$STARTED_SIDECAR" \
		MEMTRACK_OUTPUT="$PLACE/run" timeout --foreground -k 5 20 \
		sh -c 'LD_PRELOAD=$1; export LD_PRELOAD; shift; exec "$@"' sh "$LIBRARY" \
		sh -c "$SCRIPT" sh "$PROGRAMS/blocks" "$PLACE/started" \
		>"$WORK/out" 2>"$WORK/err" </dev/null
	manual_status=$?
	wait_for 40 test -s "$PLACE/ended" || echo "the sidecar does not end"
	return $manual_status
}

manual_fails()
{
	manual "$1" "$2"
	judge $?
	test -e "$PLACE/started" || echo "the program did not run"
	case $(cat "$PLACE/ended") in
	0 | 125) ;;
	*) echo "the sidecar ended with $(cat "$PLACE/ended")" ;;
	esac
}

# manuals HOW: without a fault, then each call.
manuals()
{
	measure manual
	status=$?
	tap_equal "$1, without a fault: all is well" "7;0;" "$status;$(cat "$PLACE/ended");$(judge $status)"
	each "$1" manual_fails few
}

test "$(long 0 1)" -eq 0 || manuals "manual use"
RECORD_ENVIRONMENT=MEMTRACK_BPF=off
manuals "manual use without the kernel"
RECORD_ENVIRONMENT=MEMTRACK_BPF=basic
shortages manual
tap_done
