# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 8: /dev/shm of 1 MiB, missing or read-only; a full /tmp. The program never sees it.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_command unshare util-linux
unshare -m true 2>/dev/null || tap_skip_all "no right to make a mount namespace"

in_namespace()
{
	text=$1
	mounts=$2
	shift 2
	rm -f "$WORK/run"
	bounded 60 unshare -m sh -c "$mounts"' && exec "$@"' sh "$LAUNCHER" -q -o "$WORK/run" -- "$@" \
		>"$WORK/out" 2>"$WORK/err"
	tap_verdict "$text: the program ends well" $? "$WORK/err" "$WORK/out"
	verified "$text" run
}

in_namespace "/dev/shm of 1 MiB" 'mount -t tmpfs -o size=1m none /dev/shm' "$PROGRAMS/passer" 8 20000
in_namespace "/dev/shm of 1 MiB, many threads" 'mount -t tmpfs -o size=1m none /dev/shm' "$PROGRAMS/spawner" 100 200
tap_equal "/dev/shm of 1 MiB, many threads: all blocks" 300 "$(count_size run 60001)"
in_namespace "/dev/shm of 64 MiB, 200 threads" 'mount -t tmpfs -o size=64m none /dev/shm' "$PROGRAMS/spawner" 200 200
tap_equal "/dev/shm of 64 MiB, 200 threads: all blocks" 400 "$(count_size run 60001)"
in_namespace "/dev/shm is missing" \
	': >"'"$WORK"'/null" && mount --bind /dev/null "'"$WORK"'/null" && mount -t tmpfs none /dev &&
	: >/dev/null && mount --bind "'"$WORK"'/null" /dev/null' "$PROGRAMS/passer" 4 5000
# Not /tmp itself: the artifact is there. What is looked for in it is found in TMPDIR.
mkdir "$WORK/full"
in_namespace "a full folder for temporary files" 'mount -t tmpfs -o size=64k none "'"$WORK"'/full" &&
	{ head -c 65536 /dev/zero >"'"$WORK"'/full/zeros" 2>/dev/null || :; } && export TMPDIR="'"$WORK"'/full"' \
	"$PROGRAMS/blocks" 1000 12345
tap_equal "a full folder for temporary files: all blocks" 1000 "$(count_size run 12345)"
in_namespace "/dev/shm read-only" 'mount -t tmpfs -o ro none /dev/shm' "$PROGRAMS/blocks" 1000 12345
tap_equal "/dev/shm read-only: all blocks" 1000 "$(count_size run 12345)"
for flags in noexec nosuid,nodev,noexec; do
	in_namespace "/dev/shm $flags" "mount -t tmpfs -o $flags none /dev/shm" "$PROGRAMS/blocks" 1000 12345
	tap_equal "/dev/shm $flags: all blocks" 1000 "$(count_size run 12345)"
done
in_namespace "/run and /var/tmp read-only" \
	'mount -t tmpfs -o ro none /run && mount -t tmpfs -o ro none /var/tmp' "$PROGRAMS/blocks" 1000 12345
tap_equal "/run and /var/tmp read-only: all blocks" 1000 "$(count_size run 12345)"
# /tmp itself, where the session's folder would be: with no room for another file. What is needed of
# it (the artifact, perhaps the build) is put back in its place.
full_tmp='unset XDG_RUNTIME_DIR
exec 3<"'$WORK'" 4<"'$MT_BUILDDIR'" && mount -t tmpfs -o nr_inodes=64 none /tmp || exit 99
for place in 3:"'$WORK'" 4:"'$MT_BUILDDIR'"; do
	case ${place#*:} in
	/tmp/*) mkdir -p "${place#*:}" && mount -c --bind "/proc/self/fd/${place%%:*}" "${place#*:}" || exit 99 ;;
	esac
done
exec 3<&- 4<&-
i=0
while { true >"/tmp/file$i"; } 2>/dev/null; do i=$((i + 1)); done; :'
in_namespace "a full /tmp" "$full_tmp" "$PROGRAMS/blocks" 1000 12345
tap_equal "a full /tmp: all blocks" 1000 "$(count_size run 12345)"
tap_done
