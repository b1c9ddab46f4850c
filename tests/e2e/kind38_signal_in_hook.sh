# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 38: a signal handler maps memory while its thread is in a hook, and leaves by siglongjmp.
# No deadlock, no guard that stays set: what comes after is recorded. Nor when it forks there, and the
# child goes on with what its parent was in the middle of.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
track run "$PROGRAMS/jumper" "$(long 5000 100000)" </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "handlers that map and jump: ends with 0" $? "$WORK/err"
"$MEMTRACK" verify "$WORK/run" >"$WORK/said" 2>&1
tap_check "handlers that map and jump: no contradictions" grep -q '^contradictions: none' "$WORK/said"
tap_check "handlers that map and jump: nothing is lost but what a handler did inside a hook, counted" \
	grep -qE '^losses: (none|[0-9,]+ records: signal [0-9,]+)$' "$WORK/said"
tap_equal "handlers that map and jump: the blocks afterwards" 1000 "$(count_size run 70001)"
tap_check "handlers that map and jump: mappings are recorded" test "$(count_type run Mmap)" -gt 1000
# None is lost without being counted: a handler inside a write puts two off at most.
track run "$PROGRAMS/jumper" "$(long 1500 20000)" stay </dev/null >"$WORK/out" 2>"$WORK/err"
tap_verdict "handlers that map and return: ends with 0" $? "$WORK/err"
tap_equal "handlers that map and return: recorded and lost are all" "$(cat "$WORK/out")" \
	$(($(dump run --type Mmap,Munmap | wc -l) + $(lost run)))

cat >"$WORK/sigfork.c" <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile sig_atomic_t forks, is_child;
static void handle(int number)
{
	pid_t pid = is_child ? -1 : fork();

	(void)number;
	is_child |= pid == 0;
	forks += pid > 0;
}
static void take(int count, size_t size) { while (count-- > 0) free(realloc(malloc(size), size + 1)); }
int main(int argc, char **argv)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	int want = argc > 1 ? atoi(argv[1]) : 0;

	signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &often, NULL);
	while (forks < want && !is_child)
		free(malloc(1000));
	if (is_child) {
		take(1000, 77777);
		_exit(0);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	take(1000, 55555);
	while (wait(NULL) > 0)
		;
	printf("%d\n", (int)forks);
	return 0;
}
END
$(make_value CC) -O1 -w -fno-builtin -o "$WORK/sigfork" "$WORK/sigfork.c" || exit 1
for bpf in auto off; do
	TRACK_OPTIONS=--bpf=$bpf
	track run "$WORK/sigfork" "$(long 300 3000)" </dev/null >"$WORK/out" 2>"$WORK/err"
	tap_verdict "handlers that fork (--bpf=$bpf): ends with 0" $? "$WORK/err"
	"$MEMTRACK" verify "$WORK/run" >"$WORK/said" 2>&1
	# Without kernel events the Fork of a child that is gone by then may come too late.
	test "$bpf" = off ||
		tap_check "handlers that fork (--bpf=$bpf): no contradictions" grep -q '^contradictions: none' "$WORK/said"
	tap_check "handlers that fork (--bpf=$bpf): nothing is lost but what a handler did inside a hook, counted" \
		grep -qE '^losses: (none|[0-9,]+ records: signal [0-9,]+)$' "$WORK/said"
	tap_equal "handlers that fork (--bpf=$bpf): the parent's blocks" "1000 1000" \
		"$(count_size run 55555) $(count_size run 55556)"
	tap_equal "handlers that fork (--bpf=$bpf): the children's blocks" "$(($(cat "$WORK/out") * 1000))" \
		"$(count_size run 77778)"
done
tap_done
