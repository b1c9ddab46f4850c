/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * jumper ROUNDS: a timer interrupts a loop that takes and frees blocks and mappings; its handler
 * maps and unmaps a page, and each tenth time leaves by siglongjmp, mostly out of a wrapper that
 * was on its way. At last, with the timer off, it takes 1000 blocks of 70001 bytes: they must all
 * be there, or a guard stuck.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

static sigjmp_buf back;
static volatile sig_atomic_t ticks;
static volatile sig_atomic_t may_jump;

static void touch_mapping(void)
{
	void *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map != MAP_FAILED)
		munmap(map, 8192);
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

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	struct sigaction action = { .sa_handler = on_tick };

	sigaction(SIGALRM, &action, NULL);
	set_timer(100);
	/* Jumps only out of mapping calls: out of malloc it would break the plain program too. */
	while (ticks < rounds) {
		for (int i = 0; i < 50; i++)
			free(malloc(64));
		sigsetjmp(back, 1);
		may_jump = 1;
		for (int i = 0; i < 50; i++)
			touch_mapping();
		may_jump = 0;
	}
	set_timer(0);
	for (int i = 0; i < 1000; i++)
		free(malloc(70001));
	return 0;
}
