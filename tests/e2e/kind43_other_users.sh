# SPDX-License-Identifier: MIT OR Apache-2.0
# Kinds 43 and 44: programs that are set-user-id or have file capabilities cannot be tracked and are
# named as such; a program that changes its user goes on, recorded, also what it starts and forks then.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_command setpriv util-linux
test "$(id -u)" -eq 0 || tap_skip_all "needs root to make a set-user-id program"
chmod 755 "$WORK"
cp "$PROGRAMS/blocks" "$WORK/set_id"
chown 65534 "$WORK/set_id"
chmod 4755 "$WORK/set_id"
"$LAUNCHER" -o "$WORK/run" -- sh -c '"$1" 100 333; "$2" 100 444' sh "$WORK/set_id" "$PROGRAMS/blocks" 2>"$WORK/err"
tap_equal "set-user-id child: the command ends as itself" 0 $?
tap_equal "set-user-id child: its sibling is tracked" 100 "$(count_size run 444)"
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
tap_check "set-user-id child: stat names it" grep -q set_id "$WORK/stat"
tap_check "set-user-id child: nothing of ld.so on stderr" sh -c '! grep -q "ERROR: ld.so" "$1"' sh "$WORK/err"

# A group of its own alone makes it one too; by an exec that keeps the process as well. Without the
# right to execute, the bit asks for locks, and the program is as any other.
chgrp 65534 "$WORK/set_id"
chown 0 "$WORK/set_id"
for mode in 2755 2745; do
	chmod $mode "$WORK/set_id"
	rm -f "$WORK/run"
	"$LAUNCHER" -o "$WORK/run" -- sh -c '"$1" 100 333; exec "$2" exec 100 444 "$1" 100 333' sh "$WORK/set_id" \
		"$PROGRAMS/starter" 2>"$WORK/err"
	tap_equal "set-group-id children, mode $mode: the command ends as itself" 0 $?
	tap_check "set-group-id children, mode $mode: nothing of ld.so on stderr" sh -c '! grep -q "ERROR: ld.so" "$1"' sh "$WORK/err"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	if test $mode = 2755; then
		tap_equal "set-group-id children: their sibling is tracked" "0 100" "$(count_size run 333) $(count_size run 444)"
		tap_check "set-group-id children: stat names each, and why" test "$(grep -c 'set_id (set-id)' "$WORK/stat")" -eq 2
	else
		tap_equal "the same bit without the right to execute: they are tracked" "200 100" \
			"$(count_size run 333) $(count_size run 444)"
	fi
done

# The same from a program that is no root: then capabilities of a file are more than it has.
mkdir "$WORK/open"
chmod 777 "$WORK/open"
cp "$PROGRAMS/blocks" "$WORK/blocks"
chmod 755 "$WORK/blocks"
if command -v setcap >/dev/null && cp "$PROGRAMS/blocks" "$WORK/capable" && chmod 755 "$WORK/capable" &&
	setcap cap_net_raw+ep "$WORK/capable" 2>/dev/null; then
	for caller in "" "setpriv --reuid 65534 --regid 65534 --clear-groups"; do
		rm -f "$WORK/run"
		"$LAUNCHER" -o "$WORK/run" -- $caller sh -c '"$1" 100 333; "$2" 100 444' sh "$WORK/capable" \
			"$WORK/blocks" 2>"$WORK/err"
		tap_equal "file capabilities ${caller:+as another user}: the command ends as itself" 0 $?
		tap_equal "file capabilities ${caller:+as another user}: its sibling is tracked" 100 "$(count_size run 444)"
		"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
		# Root has them all, so the loader drops nothing.
		if test -n "$caller"; then
			tap_check "file capabilities as another user: stat names it" grep -q 'capable (set-id)' "$WORK/stat"
		else
			tap_equal "file capabilities: the program is tracked" 100 "$(count_size run 333)"
		fi
		tap_check "file capabilities: nothing of ld.so on stderr" sh -c '! grep -q "ERROR: ld.so" "$1"' sh "$WORK/err"
	done
else
	tap_skip "file capabilities" "setcap is not installed, or not possible here (package libcap2-bin)"
fi

# Such a program is started without us: its loader would refuse us, and say so where it is an old one.
mkfifo "$WORK/open/fifo"
# given_us PROGRAM [CALLER...]: how often LD_PRELOAD stands in what the program, a cat, was given.
given_us()
{
	program=$1
	shift
	rm -f "$WORK/run" "$WORK/open/pid"
	"$LAUNCHER" -q -o "$WORK/run" -- "$@" sh -c '"$1" <"$2" & echo $! >"$3"; wait' sh "$program" "$WORK/open/fifo" \
		"$WORK/open/pid" >"$WORK/out" 2>"$WORK/err" &
	exec 9<>"$WORK/open/fifo"
	wait_for 10 sh -c 'test "$(cat "/proc/$(cat "$1")/comm")" = "$2"' sh "$WORK/open/pid" "${program##*/}"
	tr '\0' '\n' <"/proc/$(cat "$WORK/open/pid")/environ" | grep -c '^LD_PRELOAD='
	exec 9>&-
	wait
}
cp "$(command -v cat)" "$WORK/own_cat"
chown 65534:65534 "$WORK/own_cat"
for mode in 755 4755 2755; do
	chmod $mode "$WORK/own_cat"
	wanted=0
	test $mode != 755 || wanted=1
	tap_equal "a program of mode $mode is given us $wanted times" $wanted "$(given_us "$WORK/own_cat")"
done
if command -v setcap >/dev/null && chmod 755 "$WORK/own_cat" && setcap cap_net_raw+ep "$WORK/own_cat" 2>/dev/null; then
	tap_equal "a program with capabilities is given us where they are no more than it has" 1 "$(given_us "$WORK/own_cat")"
	tap_equal "and nowhere else" 0 "$(given_us "$WORK/own_cat" setpriv --reuid 65534 --regid 65534 --clear-groups)"
fi
if command -v su >/dev/null; then
	rm -f "$WORK/run"
	"$LAUNCHER" -o "$WORK/run" -- su -s /bin/sh -c "'$WORK/blocks' 100 446" nobody 2>"$WORK/err"
	tap_equal "by su: the command ends as itself" 0 $?
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	if test "$(count_size run 446)" -eq 100; then
		tap_ok "by su: it is recorded"
	else
		tap_check "by su: it is named" grep -q 'untracked.*blocks' "$WORK/stat"
	fi
	tap_check "by su: nothing of ld.so on stderr" sh -c '! grep -q "ERROR: ld.so" "$1"' sh "$WORK/err"
else
	tap_skip "by su" "su is not installed"
fi

track run setpriv --reuid 65534 --clear-groups "$WORK/blocks" 100 555 2>"$WORK/err"
tap_equal "a program that runs as another user ends as itself" 0 $?
verified "a program that runs as another user" run
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
if test "$(count_size run 555)" -eq 100; then
	tap_ok "a program that runs as another user is recorded"
else
	tap_check "a program that runs as another user is named" grep -q blocks "$WORK/stat"
fi
# It takes the other user's ids itself, and then starts threads, forks and executes.
cat >"$WORK/becomes.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void *take(void *unused)
{
	for (int i = 0; i < 5000; i++)
		free(malloc(44001));
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];
	int status;
	pid_t pid;

	umask(077);
	free(malloc(44000));
	if (setgid(65534) || setuid(65534))
		return 1;
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, take, NULL))
			return 2;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 1000; i++)
			free(malloc(44002));
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 3;
	return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
END
$(make_value CC) -fno-builtin -pthread -o "$WORK/becomes" "$WORK/becomes.c" || exit 1
chmod 755 "$WORK/becomes"
protected=/proc/sys/fs/protected_regular
was=$(cat $protected 2>/dev/null)
for value in ${was:-0} 1; do
	# The machine's own setting is put back at once; where it cannot be set, it is what it is.
	test "$value" = "$was" || { echo "$value" >$protected; } 2>/dev/null || continue
	tracked "becomes another user, protected_regular $value" "$WORK/becomes" "$WORK/blocks" 100 44003
	test "$value" = "$was" || echo "$was" >$protected
	tap_equal "becomes another user, protected_regular $value: threads, fork and exec" "20000 1000 100" \
		"$(count_size run 44001) $(count_size run 44002) $(count_size run 44003)"
done

# Where there is no way to our library, behind a chroot or for another user, a program starts without it:
# its loader would complain of that in the program's output.
mkdir -p "$WORK/root/closed" || exit 1
for file in "$WORK/blocks" $(ldd "$WORK/blocks" | grep -o '/[^ ]*'); do
	mkdir -p "$WORK/root${file%/*}" && cp "$file" "$WORK/root$file" || exit 1
done
library=$(find_built memtrack-preload)
library=${library%/*}/preload/.libs/libmemtrack-preload.so
for caller in "chroot $WORK/root" "setpriv --reuid 65534 --regid 65534 --clear-groups"; do
	rm -f "$WORK/run"
	case $caller in
	chroot*) "$LAUNCHER" -o "$WORK/run" -- $caller "$WORK/blocks" 100 44004 >"$WORK/out" 2>"$WORK/err" ;;
	*)
		cp "$library" "$WORK/root/closed/" && chmod 700 "$WORK/root/closed" || exit 1
		"$LAUNCHER" -o "$WORK/run" --library "$WORK/root/closed/libmemtrack-preload.so" -- \
			$caller "$WORK/blocks" 100 44004 >"$WORK/out" 2>"$WORK/err"
		;;
	esac
	tap_equal "no way to our library, by ${caller%% *}: the program ends as itself" 0 $?
	tap_equal "no way to our library, by ${caller%% *}: nothing of ld.so on stderr" 0 "$(grep -c 'ld\.so' "$WORK/err")"
	tap_check "no way to our library, by ${caller%% *}: it is listed, and why" \
		grep -q '^memtrack: untracked: .*/blocks: it was started without us in LD_PRELOAD' "$WORK/err"
done
tap_equal "nothing of ours can be written by all" "" "$(find /dev/shm /run /tmp /var/tmp -maxdepth 1 -name 'memtrack*' -perm -2 2>/dev/null)"
tap_done
