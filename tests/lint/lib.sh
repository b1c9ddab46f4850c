# SPDX-License-Identifier: MIT OR Apache-2.0
# What the lints share. Sourced by them.
. "$MT_SRCDIR/tests/tap.sh"

# source_files PATTERN...: files of the project whose name matches one of the patterns, one a line,
# relative to the source folder; nothing that bootstrap, configure or make wrote.
source_files()
{
	(
		cd "$MT_SRCDIR" || exit 1
		for dir in common preload bpf sidecar tools tests bench man doc docs m4; do
			test ! -d "$dir" || find "$dir" -type f
		done
		find . -maxdepth 1 -type f | sed 's,^\./,,'
	) | grep -v -e '/\.' -e '^\.' -e '\.skel\.h$' -e '^m4/l' -e '^aclocal' -e '^config\.h' \
		-e '^config\.status' -e '^configure$' -e '^stamp' -e '^Makefile\(\.in\)\?$' -e '~$' \
		-e '^libtool$' -e '\.log$' -e '\.trs$' | sort | while IFS= read -r file; do
		for pattern; do
			case ${file##*/} in
			$pattern)
				echo "$file"
				break
				;;
			esac
		done
	done
}

# make_variable NAME: its value in the built Makefile.
make_variable()
{
	sed -n "s/^$1 = //p" "$MT_BUILDDIR/Makefile" | head -n 1
}

# The library as built, before it is installed.
shim_library()
{
	ls "$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so" 2>/dev/null
}
