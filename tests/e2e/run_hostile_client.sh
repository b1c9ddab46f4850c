# SPDX-License-Identifier: MIT OR Apache-2.0
# A client of the sidecar's socket that does not play by the rules gets nothing by it: who has not
# the token is not heard, connections and descriptors do not pile up, and programs that start in the
# middle of it are tracked as ever.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

# attack HOW WELCOMES: a run with the attack and honest programs around it.
attack()
{
	how=$1
	rm -f "$WORK/run"
	bounded 60 "$LAUNCHER" -o "$WORK/run" -- sh -c '
		ls /proc/$PPID/fd | wc -l >"$3.before"
		"$1/hostile_client" "$2" >"$3.welcomes" & attacker=$!
		i=0
		while test $i -lt 5; do
			"$1/blocks" 100 3333
			i=$((i + 1))
		done
		case $2 in
		silent | linger)
			sleep 0.5
			kill $attacker
			;;
		esac
		wait $attacker
		"$1/blocks" 100 4444
		# Clients that are gone are let go when they are noticed; ls is one itself.
		i=0
		while ls /proc/$PPID/fd | wc -l >"$3.after" &&
			test "$(cat "$3.after")" -gt "$(cat "$3.before")" && test $i -lt 100; do
			sleep 0.05
			i=$((i + 1))
		done
		grep VmHWM /proc/$PPID/status | tr -dc 0-9 >"$3.hwm"
		exit 7' sh "$PROGRAMS" "$how" "$WORK/seen" 2>"$WORK/err" </dev/null
	tap_equal "$how: ends as the command does" 7 $?
	tap_equal "$how: programs that start meanwhile are tracked" 500 "$(count_size run 3333)"
	tap_equal "$how: and those after" 100 "$(count_size run 4444)"
	tap_equal "$how: welcomes" "$2" "$(cat "$WORK/seen.welcomes")"
	tap_check "$how: no descriptor stays ($(cat "$WORK/seen.before"), then $(cat "$WORK/seen.after"))" \
		test "$(cat "$WORK/seen.after")" -le "$(cat "$WORK/seen.before")"
	tap_check "$how: the sidecar does not grow ($(cat "$WORK/seen.hwm") KiB)" \
		test "$(cat "$WORK/seen.hwm")" -lt "${most_kib:-300000}"
	! grep -q 'Sanitizer\|runtime error' "$WORK/err"
	tap_verdict "$how: nothing out of bounds" $? "$WORK/err"
}
test -z "${MT_ASAN:-}" || most_kib=2000000
attack token 0
attack length 0
attack silent ""
attack fds 0
attack noise 0
attack repeat 3000
attack linger ""
attack hoard 200
attack hoards 200
tap_done
