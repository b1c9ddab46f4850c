/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tally FILE THREADS MS [PAUSE]: takes and gives blocks for MS milliseconds (0: for ever), in short
 * bursts, PAUSE microseconds apart (150), and keeps its own count in FILE, which is mapped shared
 * and so outlives any end. Thread t takes blocks of 5000 + t bytes. An allocation is counted behind
 * it, a free before it, so a record may be ahead of the first by one and behind the second by one,
 * never more.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 8
#define BURST	    400
#define SLICES	    1024 /* of 10 ms */

struct page {
	_Atomic uint64_t pid;
	_Atomic uint64_t start_ns;
	_Atomic uint64_t ended; /* 1: by itself */
	struct {
		_Atomic uint64_t taken, given;
		char pad[48];
	} threads[THREADS_MAX];
	_Atomic uint64_t taken_at[SLICES]; /* by thread 0, at the end of each slice */
};

static struct page *page;
static uint64_t run_ns;
static struct timespec pause_between = { .tv_nsec = 150000 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;
	uint64_t age;

	while ((age = now_ns() - page->start_ns) < run_ns) {
		for (int i = 0; i < BURST; i++) {
			char *block = malloc(5000 + thread);

			if (!block)
				_exit(98);
			page->threads[thread].taken++;
			*block = 1;
			page->threads[thread].given++;
			free(block);
		}
		if (thread == 0 && age / 10000000u < SLICES)
			page->taken_at[age / 10000000u] = page->threads[0].taken;
		nanosleep(&pause_between, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t ids[THREADS_MAX];
	unsigned threads;
	int fd;

	if (argc < 4 || argc > 5 || (threads = (unsigned)atoi(argv[2])) < 1 ||
	    threads > THREADS_MAX)
		return 2;
	if (argc == 5)
		pause_between.tv_nsec = atol(argv[4]) % 1000000 * 1000;
	run_ns = atoi(argv[3]) ? (uint64_t)atoi(argv[3]) * 1000000u : UINT64_MAX;
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*page)) < 0)
		return 2;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return 2;
	page->start_ns = now_ns();
	page->pid = (uint64_t)getpid();
	for (unsigned i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)i))
			return 2;
	work(NULL);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	page->ended = 1;
	return 7;
}
