# SPDX-License-Identifier: MIT OR Apache-2.0
# Every header compiles alone, with a guard named after its path.
. "$MT_SRCDIR/tests/lint/lib.sh"

cc=$(make_variable CC)
flags="-std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I$MT_SRCDIR -I$MT_BUILDDIR"
flags="$flags -include $MT_BUILDDIR/config.h"
libs="$(make_variable ZSTD_CFLAGS) $(make_variable MSGPACK_CFLAGS) $(make_variable URCU_CFLAGS)"
libs="$libs $(make_variable LIBBPF_CFLAGS) $(make_variable CRITERION_CFLAGS)"
clang=$(make_variable BPF_CLANG)
arch=$(make_variable BPF_ARCH)
# clang -target bpf knows nothing of the directories of a multiarch system.
test -z "$clang" || system=$("$clang" -v -E -x c - </dev/null 2>&1 |
	sed -n '/^#include </,/^End of search/s/^ \(\/.*\)/-idirafter \1/p')

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
bad=
unguarded=
for file in $(source_files '*.h'); do
	case $file in
	*/*) ;;
	*) continue ;;
	esac
	guard=MT_$(echo "$file" | tr 'a-z/.-' 'A-Z___')
	grep -q "^#ifndef $guard\$" "$MT_SRCDIR/$file" || unguarded="$unguarded $file"
	# From standard input, since a header as the main file draws a warning for its own guard.
	case $file in
	bpf/*)
		test -n "$clang" || continue
		echo "#include \"$file\"" | "$clang" -target bpf "-D__TARGET_ARCH_$arch" -Wall -Werror -g \
			-Wno-unused-function -fsyntax-only -I"$MT_SRCDIR" -I"$MT_BUILDDIR" $system \
			-x c - 2>>"$log" || bad="$bad $file"
		;;
	*)
		echo "#include \"$file\"" | $cc $flags $libs -x c - 2>>"$log" || bad="$bad $file"
		;;
	esac
done
tap_verdict "headers: each compiles alone${bad:+, but not:$bad}" "$(test -z "$bad"; echo $?)" "$log"
tap_equal "headers: each has a guard named after its path" "" "$unguarded"
tap_done
