/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What recording costs a malloc/free pair: bare, through an interposer that does nothing else, and
 * through ours, with the drain paused and with the drain at work. Each case is a child process that
 * preloads what it measures, takes and frees blocks of 64 to 319 bytes, and times its passes; the
 * median pass, by the thread's processor time, counts. Between the passes the parent drains, so
 * that a pass finds used chunks, not new pages. Figures are of one pinned thread, in nanoseconds a
 * pair.
 *
 *   hook [-l LIBRARY] [-e EMPTY]
 */
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/harness.h"
#include "common/chunk_consumer.h"
#include "common/clock.h"
#include "tests/e2e/shim_session.h"

#define PAIRS  40000
#define PASSES 21
#define LIVE   4096

struct variant {
	const char *library; /* NULL: bare */
	bool random;	     /* LIVE blocks at a time instead of one */
	bool session;
	bool drained;
	uint32_t flags;
};

static const char *ours = "preload/.libs/libmemtrack-preload.so";
static const char *empty = "bench/.libs/libempty.so";

/* Of this thread alone: the machine may be busy with others. */
static uint64_t used_ns(void)
{
	struct timespec used;

	bench_require(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0, "no clock");
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static void tight_pass(void)
{
	uint32_t i;

	for (i = 0; i < PAIRS; i++) {
		void *volatile block = malloc(64 + (i & 255));

		free(block);
	}
}

static void random_pass(void **blocks, uint32_t *seed)
{
	uint32_t i;

	for (i = 0; i < PAIRS; i++) {
		uint32_t at;

		*seed = *seed * 1664525 + 1013904223;
		at = *seed >> 20;
		free(blocks[at]);
		blocks[at] = malloc(64 + (*seed >> 8 & 255));
	}
}

/* The child: passes on `in` and `out`, then the median on `out`. */
static void measure(const char *how)
{
	static void *blocks[LIVE];
	uint64_t ns[PASSES];
	uint32_t seed = 1;
	char go;
	int i;

	for (i = 0; i < PASSES; i++) {
		uint64_t start;

		bench_require(write(STDOUT_FILENO, "p", 1) == 1, "pipe");
		bench_require(read(STDIN_FILENO, &go, 1) == 1, "pipe");
		start = used_ns();
		if (how[0] == 'r')
			random_pass(blocks, &seed);
		else
			tight_pass();
		ns[i] = used_ns() - start;
	}
	qsort(ns, PASSES, sizeof(ns[0]), by_value);
	bench_require(write(STDOUT_FILENO, "r", 1) == 1, "pipe");
	bench_require(write(STDOUT_FILENO, &ns[PASSES / 2], sizeof(ns[0])) == sizeof(ns[0]),
		      "pipe");
}

static void drain(struct mt_consumer *consumer, struct mt_stream *stream, bool *known)
{
	struct mt_thread_claim claim;

	mt_consumer_scan_threads(consumer);
	while (mt_consumer_next_thread(consumer, &claim)) {
		mt_stream_init(stream, claim.slot);
		*known = true;
	}
	if (!*known)
		return;
	(void)mt_stream_note(consumer, stream); /* a stream that stops shows in the figures */
	while (stream->taken < stream->seen) {
		if (stream->read == stream->end) {
			mt_stream_advance(consumer, stream);
			continue;
		}
		stream->taken += (uint64_t)(stream->end - stream->read);
		stream->read = stream->end;
	}
	mt_consumer_settle(consumer, false);
}

static pid_t start(const struct variant *variant, const char *session, const int *in,
		   const int *out)
{
	char *arguments[] = { (char *)(uintptr_t) "hook",
			      (char *)(uintptr_t)(variant->random ? "r" : "t"), NULL };
	pid_t pid = fork();
	cpu_set_t one;

	if (pid != 0)
		return pid;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	(void)sched_setaffinity(0, sizeof(one), &one); /* unpinned it is only noisier */
	dup2(in[0], STDIN_FILENO);
	dup2(out[1], STDOUT_FILENO);
	close(in[1]);
	close(out[0]);
	if (variant->library != NULL)
		setenv("LD_PRELOAD", variant->library, 1);
	if (variant->session)
		setenv(MT_ENV_SESSION, session, 1);
	setenv("MT_BENCH_HOOK_CHILD", "1", 1);
	execv("/proc/self/exe", arguments);
	_exit(127);
}

static uint64_t follow_child(const struct variant *variant, struct mt_consumer *consumer, int in,
			     int out)
{
	struct mt_stream stream = { 0 };
	bool known = false;
	uint64_t ns = 0;
	char what;

	for (;;) {
		struct pollfd poller = { .fd = out, .events = POLLIN };

		if (poll(&poller, 1, variant->drained ? 0 : -1) == 0) {
			drain(consumer, &stream, &known);
			continue;
		}
		bench_require(read(out, &what, 1) == 1, "the measured process ended early");
		if (what == 'r')
			break;
		if (variant->session)
			drain(consumer, &stream, &known);
		bench_require(write(in, "g", 1) == 1, "pipe");
	}
	bench_require(read(out, &ns, sizeof(ns)) == sizeof(ns), "pipe");
	return ns;
}

static void run(void *state, struct bench_result *ret)
{
	static char session[128];
	static int listener = -1;
	const struct variant *variant = state;
	struct mt_shm_options options = { .pool_bytes = 16 << 20,
					  .max_bytes = 16 << 20,
					  .counter = mt_clock_detect(),
					  .flags = variant->flags,
					  .max_wait_ms = 10000 };
	struct mt_consumer consumer;
	struct mt_hello hello;
	struct mt_shm shm;
	int in[2], out[2];
	pid_t pid;

	if (listener < 0)
		listener = mt_test_session_open(session, sizeof(session));
	bench_require(listener >= 0, "no socket");
	bench_require(pipe(in) == 0 && pipe(out) == 0, "no pipe");
	pid = start(variant, session, in, out);
	close(in[0]);
	close(out[1]);
	if (variant->session) {
		bench_require(mt_test_session_welcome(listener, &options, &hello, &shm) == 0 &&
				      mt_consumer_init(&consumer, &shm) == 0,
			      "no session: is the library built?");
	}
	ret->time_ns = follow_child(variant, &consumer, in[1], out[0]);
	ret->units = PAIRS;
	close(in[1]);
	close(out[0]);
	waitpid(pid, NULL, 0);
	if (variant->session)
		mt_consumer_fini(&consumer);
}

int main(int argc, char **argv)
{
	static struct variant variants[12];
	struct bench b;
	int option, i;

	if (getenv("MT_BENCH_HOOK_CHILD") != NULL) {
		measure(argc > 1 ? argv[1] : "t");
		return 0;
	}
	while ((option = getopt(argc, argv, "l:e:")) != -1) {
		if (option == 'l')
			ours = optarg;
		else if (option == 'e')
			empty = optarg;
		else
			return 2;
	}
	bench_init(&b, "hook");
	for (i = 0; i < 10; i++) {
		static const char *const names[] = { "bare", "empty interposer", "ours, paused",
						     "ours, drained", "ours, strict" };
		static char titles[10][48];
		struct variant *variant = &variants[i];
		int kind = i % 5;

		variant->random = i >= 5;
		variant->library = kind == 0 ? NULL : kind == 1 ? empty : ours;
		variant->session = kind >= 2;
		variant->drained = kind == 3;
		variant->flags = kind == 4 ? MT_SHM_STRICT : 0;
		snprintf(titles[i], sizeof(titles[i]), "%s, %s", names[kind],
			 variant->random ? "4096 live" : "tight");
		bench_add(&b, titles[i], run, variant);
	}
	return bench_run(&b);
}
