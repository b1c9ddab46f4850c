# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 1: eBPF cannot load. The program runs with its own status, heap records are complete, one
# clear line says what is missing, and the process tree is there from the next best source.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_command setpriv util-linux
chmod 755 "$WORK"
mkdir "$WORK/open"
chmod 777 "$WORK/open"
# The build folder may lie where only its owner looks.
mkdir -p "$WORK/parts/preload/.libs"
cp "$LAUNCHER" "$MT_BUILDDIR/memtrack-sidecar" "$PROGRAMS/blocks" "$WORK/parts/"
cp "$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so" "$WORK/parts/preload/.libs/"
chmod -R a+rX "$WORK/parts"
LAUNCHER=$WORK/parts/${LAUNCHER##*/}
PROGRAMS=$WORK/parts
count=$(long 20 200)
cat >"$WORK/tree.sh" <<END
"$PROGRAMS/blocks" 100 12345 || exit 1
i=0
while [ \$i -lt $count ]; do /bin/true; i=\$((i + 1)); done
exit 7
END

# case_of TEXT MISSING COMMAND...: MISSING is what the one line on stderr names, "" for no such line.
case_of()
{
	text=$1
	missing=$2
	shift 2
	rm -f "$WORK/run" "$WORK/open/run"
	bounded 60 "$@" -o "$WORK/open/run" -- sh "$WORK/tree.sh" >"$WORK/out" 2>"$WORK/err"
	tap_equal "$text: its own exit status" 7 $?
	cp "$WORK/open/run" "$WORK/run" 2>/dev/null
	tap_equal "$text: what is missing is said, in one line" "$(test -z "$missing" || echo 1)" \
		"$(grep -c '^memtrack: not recorded without' "$WORK/err" | grep -v '^0$')"
	tap_check "$text: it names what is missing" grep -q "^memtrack: .*$missing" "$WORK/err"
	tap_equal "$text: heap records" 100 "$(count_size run 12345)"
	verified "$text" run
	if "$MEMTRACK" stat "$WORK/run" | grep -q 'processes (told by the programs)'; then
		tap_check "$text: stat does not claim to know of untracked images" \
			sh -c '"$1" stat "$2" | grep -q "untracked: not known"' sh "$MEMTRACK" "$WORK/run"
		return
	fi
	tap_equal "$text: every process has its fork" "$((count + 1))" "$(count_type run Fork)"
	tap_equal "$text: every image has its exec" "$((count + 2))" "$(count_type run Exec)"
	tap_equal "$text: every process has its end" "$((count + 2))" "$(count_type run Exit)"
}

full=
test "$(id -u)" -eq 0 || full=CAP_BPF
case_of "with all rights of this user" "$full" "$LAUNCHER"
case_of "--bpf=off" "" "$LAUNCHER" --bpf=off
case_of "--bpf=basic" "" "$LAUNCHER" --bpf=basic
if test "$(id -u)" -eq 0; then
	if setpriv --reuid 65534 --clear-groups test -r "$LAUNCHER"; then
		case_of "as nobody" CAP_BPF setpriv --reuid 65534 --regid 65534 --clear-groups "$LAUNCHER"
	else
		tap_skip "as nobody" "${TMPDIR:-/tmp} cannot be read by others"
	fi
	if unshare -r true 2>/dev/null; then
		case_of "in a user namespace" CAP_BPF unshare -r "$LAUNCHER"
	else
		tap_skip "in a user namespace" "none can be made here"
	fi
	# What Docker leaves to root in a container.
	case_of "with the capabilities that Docker gives" CAP_BPF setpriv --inh-caps -all --bounding-set \
		-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap \
		"$LAUNCHER"
	if unshare -m mount --bind "$WORK/open" /sys/kernel/btf 2>/dev/null; then
		case_of "without BTF" btf unshare -m sh -c 'mount --bind "$1" /sys/kernel/btf; shift; exec "$@"' sh \
			"$WORK/open" "$LAUNCHER"
	fi
	case_of "with 64 KiB of locked memory" "" sh -c 'ulimit -l 64; exec "$@"' sh "$LAUNCHER"
fi
tap_done
