#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds memtrack for aarch64 and runs its tests under qemu-user, on another Debian machine.
#
#   tests/aarch64.sh FOLDER              fetches what is missing, builds, runs the tests
#   tests/aarch64.sh --if-possible FOLDER  the same; where it cannot be done, says why and succeeds
#   tests/aarch64.sh FOLDER COMMAND...   runs a command among aarch64 programs: a shell, one test
#
# All that it writes is in FOLDER: target packages are fetched with a package state of its own and
# unpacked there, never installed. The programs run in a mount namespace in which the kernel starts
# aarch64 binaries by qemu-aarch64, and /usr/lib and /usr/bin have those of the target on top.
# MEMTRACK_ARM64_SOURCES names a list of package sources with arm64, where the machine's has none
# (Ubuntu).
set -eu

src=$(cd "$(dirname "$0")/.." && pwd)
host=aarch64-linux-gnu
emulator=/usr/bin/qemu-aarch64

say()
{
	printf '==> aarch64: %s\n' "$*"
}

fail()
{
	printf 'aarch64: %s\n' "$*" >&2
	exit 1
}

# Says why this machine cannot do it, and succeeds if that was asked for.
cannot()
{
	printf '==> aarch64: not done: %s\n' "$*"
	exit "$cannot_status"
}

need_tools()
{
	for tool in "$host-gcc:gcc-$host" "$host-g++:g++-$host" "$emulator:qemu-user" \
		apt-get:apt dpkg-deb:dpkg unshare:util-linux pkg-config:pkg-config; do
		command -v "${tool%%:*}" >/dev/null || cannot "${tool%%:*} is missing (Debian's ${tool##*:})"
	done
}

# The machine's own ways to its sources, and nothing else of it: no architecture is added to it, and
# none of its hooks run.
configure_apt()
{
	mkdir -p apt/lists/partial apt/cache/archives/partial apt/etc apt/log
	: >apt/status
	{
		apt-config dump | grep '^Acquire::' || true
		cat <<-CONFIG
			APT::Architecture "arm64";
			APT::Architectures { "arm64"; };
			APT::Sandbox::User "root";
			Debug::NoLocking "true";
			Dir::State "$PWD/apt";
			Dir::State::lists "$PWD/apt/lists";
			Dir::State::status "$PWD/apt/status";
			Dir::Cache "$PWD/apt/cache";
			Dir::Log "$PWD/apt/log";
			Dir::Etc::main "$PWD/apt/etc/none";
			Dir::Etc::parts "$PWD/apt/etc/none";
		CONFIG
		test -z "${MEMTRACK_ARM64_SOURCES-}" || cat <<-CONFIG
			Dir::Etc::sourcelist "$MEMTRACK_ARM64_SOURCES";
			Dir::Etc::sourceparts "$PWD/apt/etc/none";
		CONFIG
	} >apt/apt.conf
	export APT_CONFIG="$PWD/apt/apt.conf"
}

# unpack ROOT PACKAGE-FILE...: as on a machine where /bin and /lib are in /usr.
unpack()
{
	root=$1
	shift
	mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/sbin"
	for name in bin lib sbin; do
		ln -sfn "usr/$name" "$root/$name"
	done
	for file; do
		dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink -C "$root" \
			--exclude='./usr/share/*/*' --exclude='./usr/include/boost'
	done
}

# Libraries to link and run with, those that the tests load, and the shell and small programs that
# they track. A folder with fewer of them, from an older version of this script, gets the rest.
fetch()
{
	programs="bash coreutils dash perl-base util-linux"
	packages="libc6-dev libstdc++6 libzstd-dev liburcu-dev libbpf-dev libcriterion-dev libgomp1
		libjemalloc2 $programs"
	test "$(cat fetched 2>/dev/null)" != "$packages" || return 0
	configure_apt
	say "fetching target packages (about 50 MB)"
	apt-get -q update >apt/update.log 2>&1 || cannot "apt-get update failed: $PWD/apt/update.log"
	msgpack=libmsgpack-c-dev
	apt-cache show libmsgpack-c-dev >/dev/null 2>&1 || msgpack=libmsgpack-dev
	# shellcheck disable=SC2086 # a list
	apt-get -q install -y --download-only --no-install-recommends $msgpack $packages >apt/install.log 2>&1 ||
		cannot "the target's packages could not be fetched: $PWD/apt/install.log"
	rm -rf sysroot programs
	unpack sysroot apt/cache/archives/*.deb
	for name in $programs; do
		unpack programs apt/cache/archives/"$name"_*.deb
	done
	rm -rf apt
	echo "$packages" >fetched
}

build()
{
	mkdir -p build
	cd build
	if test ! -f Makefile; then
		say "configuring in $PWD"
		PKG_CONFIG_SYSROOT_DIR=$PWD/../sysroot \
			PKG_CONFIG_LIBDIR=$PWD/../sysroot/usr/lib/$host/pkgconfig:$PWD/../sysroot/usr/share/pkgconfig \
			"$src/configure" -q --host="$host" --enable-werror \
			CC="$host-gcc --sysroot=$PWD/../sysroot" CXX="$host-g++ --sysroot=$PWD/../sysroot" \
			>configure.log 2>&1 || { tail -n 20 configure.log >&2; fail "configure failed"; }
	fi
	say "building"
	{ make -j"$(nproc)" && make -j"$(nproc)" check TESTS=; } >build.log 2>&1 ||
		{ tail -n 40 build.log >&2; fail "the build failed (all of it: $PWD/build.log)"; }
	cd ..
}

# First among the mounts of this namespace alone: what is done here is gone with it.
enter()
{
	mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
	printf '%s' ":aarch64:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:$emulator:OPF" \
		>/proc/sys/fs/binfmt_misc/register
	for name in lib bin; do
		root=sysroot
		test "$name" = lib || root=programs
		mount -t overlay overlay -o "lowerdir=$PWD/$root/usr/$name:/usr/$name" "/usr/$name"
	done
	cd build
	MT_EMULATOR=qemu-user
	export MT_EMULATOR
	exec "$@"
}

among_target_programs()
{
	unshare --user --map-root-user --mount sh "$src/tests/aarch64.sh" --enter "$PWD" "$@"
}

cannot_status=1
case ${1-} in
--enter)
	cd "$2"
	shift 2
	enter "$@"
	;;
--if-possible)
	cannot_status=0
	shift
	;;
-h | --help | '')
	sed -n '3,13s/^# \{0,1\}//p' "$0"
	exit 0
	;;
esac
test $# -gt 0 || fail "a folder to work in has to be named"
need_tools
mkdir -p "$1"
cd "$1"
shift
fetch
test -x "$src/configure" || fail "$src/configure is missing: run bootstrap first"
test ! -f "$src/config.status" || cannot "$src is configured itself: build in a folder of its own"
build
among_target_programs dash -c : 2>enter.log ||
	cannot "no namespace with a binfmt_misc of its own (Linux 6.7 has it): $(tail -n 1 enter.log)"
if test $# -gt 0; then
	among_target_programs "$@"
else
	say "running the tests under $emulator"
	among_target_programs make check-emulated
fi
