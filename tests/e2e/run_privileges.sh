# SPDX-License-Identifier: MIT OR Apache-2.0
# What the sidecar keeps and shows while programs run: the capabilities that it still needs and no
# other, in each of its threads; a folder, a socket and a file that are the user's alone; names that
# nobody can guess; and no ear for processes of other users, whatever they know.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

# From inside the run: the capabilities of all threads, what the session shows, the segment's seals.
inside='cat /proc/$PPID/task/*/status | grep -E "^Cap(Inh|Prm|Eff|Amb):" | sort -u | tr -d "\t" | tr "\n" " "; echo
directory=${MEMTRACK_SESSION##*:}
stat -c "%a %u" "$directory"
stat -c "%F %a %u" "$directory/socket"
echo "$MEMTRACK_SESSION"
sed -n "s/.*memfd:/memfd:/p" /proc/self/maps | sort -u
tr "\0" "\n" </proc/$PPID/environ | grep -c "^MEMTRACK_SESSION=" || true'
"$LAUNCHER" -q -o "$WORK/run" -- sh -c "$inside" >"$WORK/out" 2>"$WORK/err"
tap_verdict "a run to look at" $? "$WORK/err"
if test "$(id -u)" -eq 0; then
	# CAP_DAC_OVERRIDE, CAP_KILL, CAP_SYS_PTRACE
	wanted="CapAmb:0000000000000000 CapEff:0000000000080022 CapInh:0000000000000000 CapPrm:0000000000080022 "
	test "$(sed -n 's/^CapPrm:[[:space:]]*//p' /proc/self/status)" != 0000000000080022 ||
		wanted="(this test runs with less than root has)"
else
	wanted="CapAmb:0000000000000000 CapEff:0000000000000000 CapInh:0000000000000000 CapPrm:0000000000000000 "
fi
tap_equal "capabilities of all threads" "$wanted" "$(sed -n 1p "$WORK/out")"
tap_equal "the folder is the user's alone" "700 $(id -u)" "$(sed -n 2p "$WORK/out")"
tap_equal "the socket in it too" "socket 600 $(id -u)" "$(sed -n 3p "$WORK/out")"
tap_check "128 random bits of name and of token" \
	sh -c 'sed -n 4p "$1" | grep -qE "^1:[0-9a-f]{32}:[0-9a-f]{32}:/"' sh "$WORK/out"
tap_equal "the sidecar's own environment does not hold the token" 0 "$(tail -n 1 "$WORK/out")"
tap_equal "the folder is gone after the run" "" \
	"$(ls -d "$(sed -n '4s/.*://p' "$WORK/out")" 2>/dev/null)"
first=$(sed -n 4p "$WORK/out" | cut -d: -f2,3)
"$LAUNCHER" -q -o "$WORK/again" -- sh -c "$inside" >"$WORK/out" 2>"$WORK/err"
tap_check "another session has other names" test "$first" != "$(sed -n 4p "$WORK/out" | cut -d: -f2,3)"
sh -c 'umask 022; exec "$@"' sh "$LAUNCHER" -q -o "$WORK/open" -- true
mode=$(stat -c %a "$WORK/open")
tap_check "others cannot write the file, nor read it unless the umask lets them ($mode)" \
	test "$mode" = 644 -o "$mode" = 600
sh -c 'umask 077; exec "$@"' sh "$LAUNCHER" -q -o "$WORK/closed" -- true
tap_equal "with a umask of 077 the file is the user's alone" 600 "$(stat -c %a "$WORK/closed")"

if test "$(id -u)" -eq 0 && command -v setpriv >/dev/null; then
	chmod 755 "$WORK"
	mkdir "$WORK/theirs" "$WORK/inst" "$WORK/inst/bin" "$WORK/inst/libexec" "$WORK/inst/lib" \
		"$WORK/inst/libexec/memtrack" "$WORK/inst/lib/memtrack"
	chown 65534 "$WORK/theirs"
	cp "$LAUNCHER" "$WORK/inst/bin"
	cp "$(find_built memtrack-sidecar)" "$WORK/inst/libexec/memtrack"
	cp "$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so" "$WORK/inst/lib/memtrack"
	cp "$PROGRAMS/hostile_client" "$WORK/client"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/inst/bin/memtrack-preload" -q \
		-o "$WORK/theirs/run" -- sh -c 'echo "$MEMTRACK_SESSION" >"$1/session.new"
		mv "$1/session.new" "$1/session"
		i=0
		while test ! -e "$1/done" && test $i -lt 300; do sleep 0.05; i=$((i + 1)); done' \
		sh "$WORK/theirs" 2>"$WORK/err" &
	wait_for 20 test -e "$WORK/theirs/session"
	session=$(cat "$WORK/theirs/session")
	tap_equal "another user with the right token is not heard" 0 \
		"$(MEMTRACK_SESSION=$session bounded 20 setpriv --reuid 65533 --regid 65533 --clear-groups "$WORK/client" once)"
	# Both names lead there: the control for the case above.
	tap_equal "the user is" 2 \
		"$(MEMTRACK_SESSION=$session bounded 20 setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/client" once)"
	: >"$WORK/theirs/done"
	wait
else
	tap_skip "another user with the right token is not heard" "needs root, to be two other users"
fi
tap_done
