/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hooks of the preloaded library, linked under other names so that sanitizers can look at them:
 * threads that take, resize and free blocks, come and go, and fork children that do the same, all
 * with a small pool. Every stream, replayed by itself, must say what its thread did: each block is
 * taken once and freed once, and the counts are exact. Plain main() since criterion does not run
 * under TSan.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/chunk_consumer.h"
#include "common/clock.h"
#include "preload/attach.h"
#include "preload/hooks.h"
#include "tests/e2e/shim_session.h"

#define THREADS	    4
#define WAVES	    5
#define TURNS	    1500
#define FORKS	    6
#define STREAMS_MAX 256

struct stream {
	struct mt_stream stream;
	struct mt_thread_claim claim;
	uint64_t live; /* sum of addresses taken, less those given back: 0 at the end */
	uint64_t allocs, frees;
};

static struct mt_consumer consumer;
static struct stream streams[STREAMS_MAX];
static uint32_t stream_count, proc_count;
static int listener, number, failed, stop;
static uint64_t lost[8], begun;

static void check(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
	failed += !good;
}

static void replay(struct stream *stream, struct mt_rec rec)
{
	switch (rec.size_kind & 255) {
	case MT_REC_MALLOC:
	case MT_REC_CALLOC:
	case MT_REC_ALIGNED_ALLOC:
	case MT_REC_REALLOC_END:
		stream->live += rec.addr;
		stream->allocs++;
		break;
	case MT_REC_FREE:
	case MT_REC_REALLOC_BEGIN:
		stream->live -= rec.addr;
		stream->frees += rec.addr != 0;
		break;
	default:
		break;
	}
}

static void read_round(void)
{
	struct mt_thread_claim thread;
	struct mt_proc_claim proc;
	uint32_t i;

	(void)mt_consumer_scan_threads(&consumer);
	while (stream_count < STREAMS_MAX && mt_consumer_next_thread(&consumer, &thread)) {
		streams[stream_count].claim = thread;
		mt_stream_init(&streams[stream_count++].stream, thread.slot);
	}
	(void)mt_consumer_scan_procs(&consumer);
	while (mt_consumer_next_proc(&consumer, &proc))
		proc_count++;
	for (i = 0; i < stream_count; i++) {
		struct mt_stream *stream = &streams[i].stream;

		if (mt_stream_note(&consumer, stream) != 0)
			failed++;
		while (stream->taken < stream->seen) {
			if (stream->read == stream->end) {
				mt_stream_advance(&consumer, stream);
				continue;
			}
			replay(&streams[i], mt_stream_peek(stream));
			stream->read++;
			stream->taken++;
		}
	}
	mt_consumer_settle(&consumer, mt_clock_monotonic_ns(), false);
}

static void *serve(void *unused)
{
	while (mt_load_acquire(&stop) == 0)
		read_round();
	return unused;
}

/* Takes the one hello. */
static void *welcome(void *unused)
{
	struct mt_shm_options options = { .pool_bytes = 2 << 20,
					  .max_bytes = 2 << 20,
					  .counter = mt_clock_detect(),
					  .max_wait_ms = 60000 };
	struct mt_hello hello;
	struct mt_shm shm;

	if (mt_test_session_welcome(listener, &options, &hello, &shm) != 0 ||
	    mt_consumer_init(&consumer, &shm) != 0)
		exit(1);
	mt_store_release(&mt_harness_segment, (void *)shm.header);
	return unused;
}

static void use_heap(void)
{
	void *blocks[8] = { NULL };
	int i;

	for (i = 0; i < TURNS; i++) {
		void **block = &blocks[i % 8];

		mt_hook_free(*block);
		switch (i % 5) {
		case 0:
			*block = mt_hook_malloc(10 + (size_t)i % 90);
			break;
		case 1:
			*block = mt_hook_calloc(3, 7);
			break;
		case 2:
			if (mt_hook_posix_memalign(block, 64, 100) != 0)
				*block = NULL;
			break;
		case 3:
			*block = mt_hook_realloc(mt_hook_malloc(5), 5000);
			break;
		default:
			*block = mt_hook_reallocarray(NULL, 4, 25);
			break;
		}
	}
	for (i = 0; i < 8; i++)
		mt_hook_free(blocks[i]);
}

static void *work(void *unused)
{
	use_heap();
	return unused;
}

static void run_wave(void)
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			exit(1);
	use_heap();
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static bool run_child(void)
{
	int status = 1;
	pid_t pid = mt_hook_fork();

	if (pid == 0) {
		use_heap();
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool streams_are_good(void)
{
	/* Per use of the heap: each turn takes one block, each fifth turn twice. */
	const uint64_t each = TURNS + TURNS / 5;
	bool good = true;
	uint32_t i;

	for (i = 0; i < stream_count; i++) {
		if (streams[i].live != 0 || streams[i].allocs != streams[i].frees ||
		    streams[i].allocs % each != 0 || streams[i].allocs == 0) {
			printf("# stream %u: %llu taken, %llu freed\n", i,
			       (unsigned long long)streams[i].allocs,
			       (unsigned long long)streams[i].frees);
			good = false;
		}
		begun += streams[i].allocs / each;
	}
	return good;
}

int main(void)
{
	char session[128];
	pthread_t server;
	bool children = true;
	uint32_t i;

	listener = mt_test_session_open(session, sizeof(session));
	setenv(MT_ENV_SESSION, session, 1);
	if (listener < 0 || pthread_create(&server, NULL, welcome, NULL) != 0)
		return 1;
	mt_attach();
	pthread_join(server, NULL);
	if (pthread_create(&server, NULL, serve, NULL) != 0)
		return 1;
	for (i = 0; i < WAVES; i++)
		run_wave();
	for (i = 0; i < FORKS; i++)
		children = run_child() && children;
	mt_store_release(&stop, 1);
	pthread_join(server, NULL);
	read_round();
	read_round();
	for (i = 0; i < stream_count; i++)
		mt_consumer_thread_lost(&consumer, streams[i].claim.slot, lost);
	check(children, "forked children end well");
	check(streams_are_good(), "each stream replays clean");
	check(begun == WAVES * (THREADS + 1) + FORKS, "nothing is missing");
	check(proc_count == 1 + FORKS, "each child has a process slot of its own");
	check(lost[MT_LOST_POLICY] + lost[MT_LOST_TIMEOUT] + lost[MT_LOST_NO_SLOT] == 0,
	      "nothing is lost");
	mt_consumer_fini(&consumer);
	printf("1..%d\n", number);
	return failed != 0;
}
