# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 4: fork without exec, by fork() and by the raw system call: each child has a stream of its
# own with exact counts, its parent's is undisturbed, frees of inherited blocks are known.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
children=$(long 20 50)
counted "children that take what they should" "$PROGRAMS/forker" "$children"
dump counted >"$WORK/all"
wrong=
k=1
while test "$k" -le "$children"; do
	# One child by fork and one by clone, each with a pid of its own.
	got=$(sed -n "s/^{\"pid\":\([0-9]*\),.*\"type\":\"Malloc\",\"size\":$((100000 + k))[,}].*/\1/p" "$WORK/all" |
		sort | uniq -c | awk -v k="$k" '$1 == k { right++ } END { print right + 0, NR }')
	test "$got" = "2 2" || wrong="$wrong $k:$got"
	k=$((k + 1))
done
tap_equal "child k of either kind has exactly its k blocks" "" "$wrong"
tap_equal "the parent has its own" "$((children * 20))" "$(grep -c '"type":"Malloc","size":7[,}]' "$WORK/all")"

# A child of fork() that records nothing before it makes one of its own by the raw system call: that
# one's records are its own, and not taken for its parent's.
cat >"$WORK/grandchild.c" <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void take(int count, size_t size) { while (count-- > 0) free(malloc(size)); }
int main(void)
{
	long child, grandchild;
	int status = 1;

	take(1, 100);
	child = fork();
	if (child == 0) {
		grandchild = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
		if (grandchild == 0) {
			take(7, 33333);
			printf("%ld 33333 7\n", (long)syscall(SYS_getpid));
			fflush(stdout);
			_exit(0);
		}
		waitpid(grandchild, &status, 0);
		take(5, 22222);
		printf("%ld 22222 5\n", (long)syscall(SYS_getpid));
		fflush(stdout);
		_exit(status);
	}
	waitpid(child, &status, 0);
	return status;
}
END
$(make_value CC) -O0 -w -fno-builtin -o "$WORK/grandchild" "$WORK/grandchild.c" || exit 1
for bpf in auto off; do
	TRACK_OPTIONS=--bpf=$bpf
	tracked "a raw child of a fork's child (--bpf=$bpf)" "$WORK/grandchild"
	dump run >"$WORK/all"
	while read -r pid size count; do
		tap_equal "a raw child of a fork's child (--bpf=$bpf): blocks of $size" "$count" \
			"$(grep -c "^{\"pid\":$pid,.*\"size\":$size}" "$WORK/all")"
	done <"$WORK/out"
done

# Killed in fork(), before it can say whom it made: the child is its own all the same, and stands in
# front of its parent's end. It lives on, or has ended by then; it is waited for, or not yet.
cat >"$WORK/cut.c" <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *inherited;
static int ends[2];
static void take(int count, size_t size) { while (count-- > 0) free(malloc(size)); }
/* In the parent, inside fork(): until the child says a word, or is gone. */
static void die(void)
{
	char word;

	close(ends[1]);
	if (read(ends[0], &word, 1) >= 0)
		kill(getpid(), SIGKILL);
}
static void begin(int lives_on)
{
	inherited = malloc(11111);
	if (pipe(ends) < 0 || pthread_atfork(NULL, die, NULL) || fork())
		_exit(1);
	free(inherited);
	take(7, 33333);
	printf("%d %d\n", (int)getpid(), (int)getppid());
	fflush(stdout);
	if (lives_on && write(ends[1], "w", 1) == 1) {
		usleep(400000);
		take(7, 33333);
	} else {
		take(7, 33333);
	}
	_exit(0);
}
int main(int argc, char **argv)
{
	int lives_on = strchr(argv[1], 'l') != NULL, zombie = strchr(argv[1], 'z') != NULL;

	for (int i = 0; i < 5; i++) {
		if (fork() == 0)
			begin(lives_on);
		if (!zombie)
			wait(NULL);
	}
	usleep(lives_on ? 500000 : zombie ? 50000 : 0);
	while (wait(NULL) > 0)
		;
	return argc != 2;
}
END
$(make_value CC) -O0 -w -fno-builtin -pthread -o "$WORK/cut" "$WORK/cut.c" || exit 1
TRACK_OPTIONS=--bpf=off
for how in - z l lz; do
	tracked "killed in fork() ($how)" "$WORK/cut" $how
	tap_equal "killed in fork() ($how): nothing is said of it" "" "$(cat "$WORK/err")"
	dump run >"$WORK/all"
	got=
	while read -r pid parent; do
		got="$got $(grep -c "^{\"pid\":$pid,.*\"size\":33333[,}]" "$WORK/all")"
		got="$got,$(grep -c "^{\"pid\":$pid,.*\"type\":\"Fork\",\"parent_pid\":$parent[,}]" "$WORK/all")"
	done <"$WORK/out"
	tap_equal "killed in fork() ($how): children with their blocks and their Fork" \
		" 14,1 14,1 14,1 14,1 14,1" "$got"
done
tap_done
