# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by sudo: the command and the file are the caller's, root only opens the kernel's sources.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
test "$(id -u)" -eq 0 || tap_skip_all "needs root to act as sudo does"
need_command setpriv util-linux
user=65534
chmod 755 "$WORK"
mkdir "$WORK/theirs"
chown $user "$WORK/theirs"
cp "$PROGRAMS/blocks" "$WORK/blocks"
chmod 755 "$WORK/blocks"
# The build may lie where another user cannot read it.
mkdir -p "$WORK/inst/bin" "$WORK/inst/libexec/memtrack" "$WORK/inst/lib/memtrack"
cp "$LAUNCHER" "$WORK/inst/bin"
cp "$(find_built memtrack-sidecar)" "$WORK/inst/libexec/memtrack"
cp "$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so" "$WORK/inst/lib/memtrack"
launcher=$WORK/inst/bin/memtrack-preload

# Root may be in more groups, or in none.
SUDO_UID=$user SUDO_GID=$user setpriv --groups 0,1,2 "$launcher" -o "$WORK/theirs/run" -- \
	sh -c 'id -u; id -g; id -G; echo "$HOME"; "$1" 1000 12345' sh "$WORK/blocks" >"$WORK/out" 2>"$WORK/err"
tap_equal "the command ends as itself" 0 $?
tap_equal "it has the caller's ids and groups" "$user $user $user" "$(head -n 3 "$WORK/out" | tr '\n' ' ' | sed 's/ $//')"
tap_equal "it has the caller's home" "$(getent passwd $user | cut -d: -f6)" "$(sed -n 4p "$WORK/out")"
tap_equal "the file is the caller's" $user "$(stat -c %u "$WORK/theirs/run")"
tap_check "it is said" grep -q sudo "$WORK/err"
tap_equal "all blocks are there" 1000 "$("$MEMTRACK" dump "$WORK/theirs/run" | grep -c '"size":12345[,}]')"
tap_check "verify is clean" "$MEMTRACK" verify "$WORK/theirs/run"

# While it runs, the sidecar has the caller's ids and no capability.
SUDO_UID=$user SUDO_GID=$user "$launcher" -q -o "$WORK/theirs/ids" -- sh -c \
	'sed -n "s/^Uid:[[:space:]]*//p; s/^CapEff:[[:space:]]*//p" "/proc/$PPID/status"' >"$WORK/out" 2>/dev/null
tap_equal "the sidecar has the caller's ids" "$user" "$(awk 'NR == 1 { print $1 == $2 && $2 == $3 ? $1 : $0 }' "$WORK/out")"
tap_equal "the sidecar has no capability" "0000000000000000" "$(sed -n 2p "$WORK/out")"

mkdir "$WORK/roots"
SUDO_UID=$user SUDO_GID=$user "$launcher" -q -o "$WORK/roots/run" -- true 2>"$WORK/err"
tap_equal "the caller cannot write where only root can" 125 $?
SUDO_UID=$user SUDO_GID=$user "$launcher" -q --as-root -o "$WORK/roots/run" -- id -u >"$WORK/out" 2>"$WORK/err"
tap_equal "--as-root keeps root" "0 0" "$? $(cat "$WORK/out")"
SUDO_UID=nonsense SUDO_GID=1 "$launcher" -q -o "$WORK/roots/bad" -- touch "$WORK/started" 2>"$WORK/err"
tap_equal "a SUDO_UID that is none is our own failure" "125 0" "$? $(ls "$WORK" | grep -c '^started$')"
tap_done
