# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 45: a program that forbids itself all system calls but the allocator's own goes on, and its
# records too, those of children that inherit the filter as well: the hooks need none. In strict mode,
# and where the counter may not be read, recording stops, counted. What the kernel refuses changes
# nothing.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
blocks=$(long 100000 1000000)
"$PROGRAMS/sandbox" filter 10
test $? -eq 0 || tap_skip_all "no seccomp here"
tracked "seccomp filter" "$PROGRAMS/sandbox" filter "$blocks"
tap_equal "seccomp filter: every block is there" "$blocks" "$(count_size run 80001)"
TRACK_OPTIONS="--buffer-size 64K"
tracked "seccomp filter, smallest pool" "$PROGRAMS/sandbox" filter "$blocks"
tap_equal "seccomp filter, smallest pool: every block is there" "$blocks" "$(count_size run 80001)"
tracked "seccomp filter, and one that is refused" "$PROGRAMS/sandbox" again "$blocks"
tap_equal "seccomp filter, and one that is refused: every block is there" "$blocks" "$(count_size run 80001)"
tracked "seccomp filter by the system call" "$PROGRAMS/sandbox" seccomp 20000
tap_equal "seccomp filter by the system call: every block is there" 20000 "$(count_size run 80001)"
for bpf in auto off; do
	TRACK_OPTIONS="--bpf=$bpf --buffer-size 64K"
	tracked "a child with the filter, bpf $bpf" "$PROGRAMS/sandbox" fork 5000
	tap_equal "a child with the filter, bpf $bpf: every block is there" "5000 5000" \
		"$(count_size run 80001) $(count_size run 80002)"
	tap_equal "a child with the filter, bpf $bpf: it is a process of its own" 2 \
		"$(dump run --type Malloc | sed -n 's/.*"pid":\([0-9]*\),.*"size":8000[12][,}].*/\1/p' | sort -u | wc -l)"
	# One of the system call clone cannot find out who it is.
	track run "$PROGRAMS/sandbox" clone 5000 2>"$WORK/err"
	tap_verdict "a child of a raw clone, bpf $bpf: ends well" $? "$WORK/err"
	tap_equal "a child of a raw clone, bpf $bpf: recorded and lost are all" 20000 \
		"$((2 * $(count_size run 80001) + 2 * $(count_size run 80002) + $(lost run)))"
	tap_equal "a child of a raw clone, bpf $bpf: its parent is recorded" 5000 "$(count_size run 80001)"
	"$MEMTRACK" verify "$WORK/run" >"$WORK/said" 2>&1
	tap_equal "a child of a raw clone, bpf $bpf: nothing contradicts, nothing is damaged" "1 0" \
		"$(grep -c '^contradictions: none' "$WORK/said") $(grep -c '^damaged' "$WORK/said")"
done
TRACK_OPTIONS=
# What is executed then could not say hello: it is left alone, and listed.
"$LAUNCHER" -o "$WORK/other" -- "$PROGRAMS/sandbox" no_socket 1000 "$PROGRAMS/blocks" 100 80009 2>"$WORK/err"
tap_equal "a program behind a filter that forbids sockets: ends well" 0 $?
tap_equal "a program behind a filter that forbids sockets: what was before is there" "1000 0" \
	"$(count_size other 80001) $(count_size other 80009)"
tap_check "a program behind a filter that forbids sockets: it is listed" grep -q 'untracked: .*/blocks' "$WORK/err"
tracked "a request that the kernel refuses" "$PROGRAMS/sandbox" refused 1000 "$PROGRAMS/blocks" 100 80009
tap_equal "a request that the kernel refuses: all is recorded, also what follows by exec" "1000 100" \
	"$(count_size run 80001) $(count_size run 80009)"
for what in strict strict_call counter; do
	"$PROGRAMS/sandbox" $what 10
	if test $? -ne 0; then
		tap_skip "$what" "this cannot be forbidden here"
		continue
	fi
	track run "$PROGRAMS/sandbox" $what 1000 2>"$WORK/err"
	tap_verdict "$what: the program ends well" $? "$WORK/err"
	tap_equal "$what: recorded and lost are all" 2000 "$((2 * $(count_size run 80001) + $(lost run)))"
	tap_equal "$what: what was before is there" 1 "$(count_size run 80000)"
done

# numbers_of NAME...: of system calls on this machine, those that its headers know.
numbers_of()
{
	{
		echo "#include <sys/syscall.h>"
		printf 'SYS_%s\n' "$@"
	} | $(make_value CC) -E -P - | grep '^[0-9]*$' | paste -sd, -
}

# denied TEXT ERROR NAME...: a profile that refuses these calls, from the launcher on.
denied()
{
	text=$1
	error=$2
	shift 2
	numbers=$(numbers_of "$@")
	rm -f "$WORK/run"
	bounded 60 "$PROGRAMS/deny" "$error" "$numbers" "$LAUNCHER" -o "$WORK/run" -- \
		sh -c '"$1" 500 80001; "$1" 500 80001; exit 7' sh "$PROGRAMS/blocks" >"$WORK/out" 2>"$WORK/err"
	tap_equal "$text: ends as itself" 7 $?
	verified "$text" run
}

# all_blocks TEXT LINE: each is recorded; one line names what is missing, where LINE is not empty.
all_blocks()
{
	tap_equal "$1: all blocks" 1000 "$(count_size run 80001)"
	test -z "$2" || tap_equal "$1: it is said, in one line" 1 "$(grep -c "^memtrack: .*$2" "$WORK/err")"
}

EPERM=1
ENOSYS=38
denied "a container's profile" $EPERM bpf perf_event_open ptrace userfaultfd process_vm_readv process_vm_writev \
	setns unshare mount umount2 keyctl add_key request_key open_by_handle_at name_to_handle_at kexec_load
all_blocks "a container's profile" "no kernel events"
for error in $EPERM $ENOSYS; do
	for calls in bpf perf_event_open "pidfd_open pidfd_getfd pidfd_send_signal" "close_range statx faccessat2 openat2"; do
		denied "without $calls (error $error)" $error $calls
		all_blocks "without $calls (error $error)" ""
	done
done
denied "without memfd_create" $EPERM memfd_create
tap_equal "without memfd_create: it is said, in one line" 1 "$(grep -c 'no heap events.*memfd_create' "$WORK/err")"
tap_equal "without memfd_create: and each image listed" 3 "$(grep -c 'untracked: pid' "$WORK/err")"
# Nothing may be recorded that a child could write over: it is counted, not a quiet zero.
numbers=$(numbers_of madvise)
bounded 60 "$PROGRAMS/deny" $EPERM "$numbers" "$LAUNCHER" --force -o "$WORK/run" -- "$PROGRAMS/blocks" 500 80001 \
	2>"$WORK/err"
tap_equal "without madvise: ends as itself" 0 $?
tap_check "without madvise: what is not recorded is counted ($(lost run))" test "$(lost run)" -ge 500

# A vfork child that sets a filter for itself is no reason to start its parent's later children
# without us; whether its own exec succeeds or not.
cat >"$WORK/confines.c" <<'END'
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
	static struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { .len = 1, .filter = code };
	pid_t child = vfork();
	int status = 1;

	if (child == 0) {
		if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			execl(argv[1], argv[1], NULL);
		_exit(9);
	}
	waitpid(child, &status, 0);
	if (!strcmp(argv[2], "spawn")) {
		if (posix_spawn(&child, argv[3], NULL, NULL, argv + 3, environ))
			return 8;
	} else {
		child = fork();
		if (child == 0) {
			execv(argv[3], argv + 3);
			_exit(7);
		}
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}
END
$(make_value CC) -w -o "$WORK/confines" "$WORK/confines.c" || exit 1
for confined in "$(command -v true)" /no/such/program; do
	for how in fork spawn; do
		tracked "a vfork child that confines itself, then $confined, then a $how" \
			"$WORK/confines" "$confined" "$how" "$PROGRAMS/blocks" 1000 12345
		tap_equal "a vfork child that confines itself, then $confined, then a $how: every block is there" \
			1000 "$(count_size run 12345)"
	done
done
tap_done
