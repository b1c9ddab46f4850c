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

# What the line names where eBPF is not allowed, and where it is.
ebpf=CAP_BPF
full=
if ! built_with_bpf; then
	ebpf="built without eBPF"
	full=$ebpf
elif test "$(id -u)" -ne 0; then
	full=$ebpf
fi
case_of "with all rights of this user" "$full" "$LAUNCHER"
case_of "--bpf=off" "" "$LAUNCHER" --bpf=off
case_of "--bpf=basic" "" "$LAUNCHER" --bpf=basic
if test "$(id -u)" -eq 0; then
	if setpriv --reuid 65534 --clear-groups test -r "$LAUNCHER"; then
		case_of "as nobody" "$ebpf" setpriv --reuid 65534 --regid 65534 --clear-groups "$LAUNCHER"
	else
		tap_skip "as nobody" "${TMPDIR:-/tmp} cannot be read by others"
	fi
	if unshare -r true 2>/dev/null; then
		case_of "in a user namespace" "$ebpf" unshare -r "$LAUNCHER"
	else
		tap_skip "in a user namespace" "none can be made here"
	fi
	# What Docker leaves to root in a container.
	case_of "with the capabilities that Docker gives" "$ebpf" setpriv --inh-caps -all --bounding-set \
		-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap \
		"$LAUNCHER"
	if unshare -m mount --bind "$WORK/open" /sys/kernel/btf 2>/dev/null; then
		case_of "without BTF" "${full:-btf}" unshare -m sh -c 'mount --bind "$1" /sys/kernel/btf; shift; exec "$@"' sh \
			"$WORK/open" "$LAUNCHER"
	fi
	case_of "with 64 KiB of locked memory" "$full" sh -c 'ulimit -l 64; exec "$@"' sh "$LAUNCHER"
fi

# contained TEXT MISSING MOUNTS OPTION...: in namespaces of its own, where MOUNTS were done.
contained()
{
	text=$1
	missing=$2
	mounts=$3
	shift 3
	if unshare "$@" sh -c "$mounts" 2>/dev/null; then
		case_of "$text" "$missing" unshare "$@" sh -c "$mounts"' && exec "$@"' sh "$LAUNCHER"
	else
		tap_skip "$text" "no right to make namespaces or to mount"
	fi
}

contained "in all namespaces of its own" "$full" true --mount --pid --fork --net --ipc --uts --mount-proc
contained "in all namespaces, of a user" "$ebpf" true --user --map-root-user --mount --pid --fork --net --ipc --mount-proc
contained "in a user namespace without a user" "$ebpf" true --user --pid --fork
contained "in a PID namespace that sees the outer /proc" "$full" true --pid --fork
contained "where /proc has processes only" "$full" 'mount -t proc -o subset=pid proc /proc' --mount
contained "where /proc has one's own processes only" "$full" 'mount -t proc -o hidepid=2,subset=pid proc /proc' \
	--mount --pid --fork
contained "without /proc" "${full:-/proc}" 'mount -t tmpfs none /proc' --mount
contained "without /sys" "${full:-/sys}" 'mount -t tmpfs none /sys' --mount
contained "without /proc, /sys and temporary folders" "${full:-/sys}" 'for d in /proc /sys /dev/shm /run /var/tmp; do
	mount -t tmpfs -o ro none $d || exit 1
done' --mount
tap_done
