/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * jumper ROUNDS [stay]: a timer interrupts a loop that takes and frees blocks and mappings; its
 * handler maps and unmaps a page, and each tenth time leaves by siglongjmp, mostly out of a wrapper
 * that was on its way. At last, with the timer off, it takes 1000 blocks of 70001 bytes: they must
 * all be there, or a guard stuck.
 *
 * With `stay` the handler returns each time, and only it maps: most of what it interrupts is then
 * malloc and free. How many mapping calls there were is printed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

static sigjmp_buf back;
static volatile sig_atomic_t ticks;
static volatile sig_atomic_t may_jump;
static volatile long mapping_calls;

static void touch_mapping(void)
{
	void *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map != MAP_FAILED && !munmap(map, 8192))
		mapping_calls += 2;
}

static void on_tick(int number)
{
	(void)number;
	ticks++;
	touch_mapping();
	if (may_jump && ticks % 10 == 0)
		siglongjmp(back, 1);
}

static void set_timer(long microseconds)
{
	struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Jumps only out of mapping calls: out of malloc it would break the plain program too. */
static void map_and_jump(void)
{
	sigsetjmp(back, 1);
	may_jump = 1;
	for (int i = 0; i < 50; i++)
		touch_mapping();
	may_jump = 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	int stay = argc > 2 && !strcmp(argv[2], "stay");
	struct sigaction action = { .sa_handler = on_tick };

	sigaction(SIGALRM, &action, NULL);
	set_timer(100);
	while (ticks < rounds) {
		for (int i = 0; i < 50; i++)
			free(malloc(64));
		if (!stay)
			map_and_jump();
	}
	set_timer(0);
	for (int i = 0; i < 1000; i++)
		free(malloc(70001));
	if (stay)
		printf("%ld\n", mapping_calls);
	return 0;
}
