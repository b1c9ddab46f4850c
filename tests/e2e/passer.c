/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * passer THREADS ROUNDS [churn|pause|stop|map]: threads hand blocks to each other through a few
 * shared places: each takes a block, swaps it in, and frees or reallocates what came out.
 * Everything is given back at the end. With `map` they do so with mappings of a few pages, some of
 * which they move, grow or shrink before. With `churn` they only take and free blocks of their own;
 * with `pause` as well, while the parent process is stopped for a second (or for as many as a
 * fourth argument says); with `stop`, while it is stopped for all of the time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mremap, where it is compiled by itself */
#endif
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES 8
#define PAGE   4096UL

static void *places[PLACES];
static long rounds;
static int churn;

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void *must(void *block)
{
	if (!block)
		abort();
	return block;
}

static void *take(uint32_t dice)
{
	size_t size = 16 + dice % 512;
	void *block;

	switch (dice % 16) {
	case 0:
		return must(calloc(2, size));
	case 1:
		if (posix_memalign(&block, 64, size))
			abort();
		return block;
	default:
		return must(malloc(size));
	}
}

static void *pass(void *number)
{
	uint32_t state = (uint32_t)(uintptr_t)number;

	for (long i = 0; i < rounds; i++) {
		uint32_t dice = next_random(&state);
		void *block = take(dice);

		if (churn) {
			free(block);
			continue;
		}
		block = __atomic_exchange_n(&places[dice / 512 % PLACES], block, __ATOMIC_ACQ_REL);
		/* Grows past what its size class has room for, or shrinks. */
		if (block && dice % 5 == 0)
			block = must(realloc(block, dice % 2 ? 2000 + dice % 4000 : 8));
		free(block);
	}
	return NULL;
}

/* The first word of a mapping is its length. */
static size_t *map(size_t bytes)
{
	size_t *start =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED)
		abort();
	*start = bytes;
	return start;
}

static size_t *remap(size_t *start, size_t bytes)
{
	size_t *moved = mremap(start, *start, bytes, MREMAP_MAYMOVE);

	if (moved == MAP_FAILED)
		abort();
	*moved = bytes;
	return moved;
}

static void *pass_maps(void *number)
{
	uint32_t state = (uint32_t)(uintptr_t)number;

	for (long i = 0; i < rounds; i++) {
		uint32_t dice = next_random(&state);
		size_t *start = map(PAGE * (1 + dice % 2));

		start = __atomic_exchange_n(&places[dice / 512 % PLACES], start, __ATOMIC_ACQ_REL);
		if (!start)
			continue;
		if (dice % 3 == 0)
			start = remap(start, PAGE * (1 + dice / 16 % 4));
		if (munmap(start, *start))
			abort();
	}
	return NULL;
}

static void give_back(size_t *start)
{
	if (start && munmap(start, *start))
		abort();
}

/* A child without a program of its own wakes the parent up. */
static pid_t pause_parent(unsigned int seconds)
{
	pid_t parent = getppid();
	pid_t pid;

	kill(parent, SIGSTOP);
	pid = fork();
	if (pid == 0) {
		sleep(seconds);
		kill(parent, SIGCONT);
		_exit(0);
	}
	return pid;
}

int main(int argc, char **argv)
{
	pthread_t threads[256];
	int count = argc > 2 ? atoi(argv[1]) : 0;
	int maps = argc > 3 && !strcmp(argv[3], "map");
	pid_t waker = 0;

	if (count < 1 || count > 256)
		return 95;
	rounds = atol(argv[2]);
	churn = argc > 3;
	if (churn && !strcmp(argv[3], "pause"))
		waker = pause_parent(argc > 4 ? (unsigned int)atoi(argv[4]) : 1);
	if (churn && !strcmp(argv[3], "stop"))
		kill(getppid(), SIGSTOP);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, maps ? pass_maps : pass,
				   (void *)(uintptr_t)(i + 1)))
			return 97;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PLACES; i++)
		if (maps)
			give_back(places[i]);
		else
			free(places[i]);
	if (waker)
		waitpid(waker, NULL, 0);
	if (churn && !strcmp(argv[3], "stop"))
		kill(getppid(), SIGCONT);
	return 0;
}
