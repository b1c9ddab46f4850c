# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 55, source by source: executable mappings, made at exec and later, equal those of /proc/PID/maps: address, offset,
# device, inode and path. On plain files, deleted ones, memfds, overlayfs, bind mounts, in a chroot,
# and after exec from a thread.
. "$MT_SRCDIR/tests/e2e/kernel_lib.sh"

target="$MT_BUILDDIR/tests/e2e/kernel_maps_target"
lib=$(ldd "$target" | awk '$1 ~ /^libc\.so/ { print $3 }')
other=$(dirname "$lib")/libm.so.6

# The mappings of the last image whose file is named kernel_maps_target.
maps_of_trace() {
	awk '
	function field(name,   s) {
		if (!match($0, "\"" name "\":(\"[^\"]*\"|[-0-9]+)")) return ""
		s = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
		gsub(/"/, "", s); return s
	}
	/"type":"Exec"/ && field("path") ~ /kernel_maps_target$/ { pid = field("pid"); n = 0; next }
	/"type":"Exec"/ && field("pid") == pid { pid = "" }
	/"type":"Mapping"/ && field("pid") == pid { line[n++] = field("addr") " " field("end") " " \
		field("offset") " " field("dev") " " field("ino") " " field("path") }
	END { for (i = 0; i < n; i++) print line[i] }
	' | sort -u
}

# check NAME SOURCES COMMAND...; the command makes $work/maps. SOURCES are options of kernel_trace.
check() {
	check_name=$1 sources=$2
	shift 2
	rm -f "$work/maps"
	# shellcheck disable=SC2086
	run_trace "$check_name" "$work/trace" "$work/err" $sources -- "$@" || return 0
	if grep -q '"End","status":19712' "$work/trace"; then # 77: the command cannot run here
		skip "$check_name" "$(cat "$work/why" 2>/dev/null)"
		return 0
	fi
	sort "$work/maps" >"$work/want" 2>/dev/null
	maps_of_trace <"$work/trace" >"$work/got"
	if [ -s "$work/want" ] && diff "$work/want" "$work/got" >"$work/diff"; then
		ok "$check_name"
	else
		not_ok "$check_name" "$work/diff" "$work/err" "$work/trace"
	fi
}

# A file system with all that the target needs, without /proc.
make_root() {
	mkdir -p "$1/proc" "$1/tmp" "$1$work" && cp "$target" "$1/kernel_maps_target" || return 1
	for file in $(ldd "$target" | grep -o '/[^ ]*') "$other"; do
		mkdir -p "$1$(dirname "$file")" && cp "$file" "$1$file" || return 1
	done
}

# Runs in a mount namespace of its own; 77 with a reason in $work/why where that cannot be.
cat >"$work/mounts" <<'END'
cannot() { echo "$1" >"$work/why"; exit 77; }
[ "$(id -u)" = 0 ] || cannot "mounting needs root"
case $1 in
overlay|overlay-chroot)
	mount -t tmpfs none "$work/stage" || cannot "no tmpfs"
	mkdir "$work/stage/lower" "$work/stage/upper" "$work/stage/over" "$work/stage/merged"
	cp -a "$work/root/." "$work/stage/lower"
	mount -t overlay -o "lowerdir=$work/stage/lower,upperdir=$work/stage/upper,workdir=$work/stage/over" \
		none "$work/stage/merged" 2>/dev/null || cannot "no overlayfs"
	cp "$work/root/kernel_maps_target" "$work/stage/merged/upper-file"
	if [ "$1" = overlay ]; then
		exec "$work/stage/merged/kernel_maps_target" "$work/maps" \
			dlopen "$work/stage/merged$other" map "$work/stage/merged/upper-file"
	fi
	mount --bind "$work" "$work/stage/merged$work"
	mount -t proc proc "$work/stage/merged/proc" || cannot "no /proc in the chroot"
	exec chroot "$work/stage/merged" /kernel_maps_target "$work/maps" dlopen "$other" \
		map /upper-file deleted /upper-file
	;;
bind)
	mkdir -p "$work/bound" && mount --bind "$work/root" "$work/bound" || cannot "no bind mounts"
	touch "$work/file" && mount --bind "$work/root$other" "$work/file"
	exec "$work/bound/kernel_maps_target" "$work/maps" map "$work/file" \
		dlopen "$work/bound$other"
	;;
chroot)
	mount --bind "$work" "$work/root$work" && mount -t proc proc "$work/root/proc" ||
		cannot "no /proc in the chroot"
	exec chroot "$work/root" /kernel_maps_target "$work/maps" dlopen "$other" memfd inside
	;;
esac
END
export work other
mkdir "$work/stage" && make_root "$work/root" || exit 1

# A path of many components, deeper than any loop that is not made for it.
deep=$work
i=0
while [ $i -lt 120 ]; do deep=$deep/d$i; i=$((i + 1)); done
mkdir -p "$deep"
cp "$target" "$deep/kernel_maps_target" || exit 1

for sources in "--process=tp_btf --exec-maps=vma_iter" "--process=tp_btf --exec-maps=perf --perf-all" \
	       "--process=raw_tp --perf-tree" "--process=perf --perf-tree" "--process=perf --perf-all"; do
	cp "$lib" "$work/gone1"; cp "$lib" "$work/gone2"; cp "$lib" "$work/a name (deleted)"
	cp "$lib" "$deep/file"
	check "plain files ($sources)" "$sources" "$target" "$work/maps" dlopen "$other" \
		map "$deep/file" protect "$other"
	check "a program deep down ($sources)" "$sources" "$deep/kernel_maps_target" "$work/maps" dlopen "$other"
	check "deleted files and memfds ($sources)" "$sources" "$target" "$work/maps" \
		deleted "$work/gone1" removed "$work/gone2" memfd "a memfd" memfd x
	check "exec from a thread ($sources)" "$sources" "$target" "$work/maps" \
		thread-exec dlopen "$other"
	for place in overlay overlay-chroot bind chroot; do
		check "$place ($sources)" "$sources" unshare -m sh "$work/mounts" $place
	done
done
plan
