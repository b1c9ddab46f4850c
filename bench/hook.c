/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What recording costs a hooked call, step by step, and what the built library takes.
 *
 *   hook [-l LIBRARY] [-o OTHER] [-s STEPS]
 *
 * OTHER is a second build of the library, to compare with in the same run.
 *
 * Every way to run (bare, the interposers of hook_steps.h, the library) is a process of its own,
 * pinned to the first processor. All live at once and take turns: in each round each of them makes
 * one short pass of every kind, so a slow phase of the machine meets all of them. A pass is timed
 * by the processor time of its thread, those of whole threads and processes by the clock.
 *
 * "paused": nobody drains during the pass; between the passes the parent gives the chunks back, so
 * that a pass finds chunks that were used before. "new chunks": nobody ever does, so a pass also
 * pays for the pages it touches first. "drained": the parent drains meanwhile on the other
 * processor.
 *
 * Columns, in nanoseconds: the median, lowest and highest pass; of the differences to bare in the
 * same round the median, and what a tenth of the rounds are below and above; the difference of the
 * lowest passes. Environment: BENCH_ROUNDS (41), BENCH_FILTER (a part of the row's name).
 */
#include <fcntl.h>
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
#include "bench/hook_child.h"
#include "bench/hook_steps.h"
#include "common/chunk_consumer.h"
#include "common/clock.h"
#include "tests/e2e/shim_session.h"

#define ROUNDS_MAX  401
#define STREAMS_MAX 256
#define NEW_CHUNKS  (UINT64_C(1) << 30) /* more than all rounds take */

enum way {
	WAY_BARE,
	WAY_STEPS, /* and BENCH_STEPS - 1 more */
	WAY_OURS = WAY_STEPS + BENCH_STEPS,
	WAY_STRICT,
	WAY_NEW_CHUNKS,
	WAY_OTHER,
	WAYS
};

/* A measured process, and what it records. */
struct measured {
	pid_t pid;
	int orders, answers;
	bool recording, never_drained;
	struct mt_consumer consumer;
	struct mt_stream streams[STREAMS_MAX];
	uint32_t stream_count;
};

struct row {
	char name[48];
	enum way way;
	char pass;
	bool drained;
	const struct row *bare; /* NULL: there is nothing to compare with */
	bool absent;
	double ns[ROUNDS_MAX];
};

static const char *library = "preload/.libs/libmemtrack-preload.so";
static const char *other; /* NULL: none */
static const char *steps = "bench/.libs/libsteps.so";
static struct measured measured[WAYS];
static struct row rows[64];
static int row_count;

static void become_child(enum way way, const char *session, const int *orders, const int *answers)
{
	char step[16];
	char *arguments[] = { (char *)(uintptr_t) "hook", step, NULL };

	snprintf(step, sizeof(step), "%d",
		 way >= WAY_STEPS && way < WAY_OURS ? (int)(way - WAY_STEPS) : -1);
	dup2(orders[0], STDIN_FILENO);
	dup2(answers[1], STDOUT_FILENO);
	setenv("MT_BENCH_HOOK_STEPS", steps, 1);
	if (session != NULL) {
		setenv("LD_PRELOAD", way == WAY_OTHER ? other : library, 1);
		setenv(MT_ENV_SESSION, session, 1);
	}
	execv("/proc/self/exe", arguments);
	_exit(127);
}

static void start(enum way way)
{
	static char session[128];
	static int listener = -1;
	struct measured *m = &measured[way];
	struct mt_shm_options options = { .pool_bytes = 16 << 20,
					  .max_bytes = 16 << 20,
					  .max_map_bytes = UINT64_MAX,
					  .counter = mt_clock_detect(),
					  .flags = way == WAY_STRICT ? MT_SHM_STRICT : 0,
					  .max_wait_ms = 10000 };
	struct mt_hello hello;
	struct mt_shm shm;
	int orders[2], answers[2];

	if (listener < 0)
		listener = mt_test_session_open(session, sizeof(session));
	bench_require(listener >= 0, "opening a socket");
	bench_require(pipe2(orders, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0,
		      "opening a pipe");
	m->recording = way >= WAY_OURS;
	m->never_drained = way == WAY_NEW_CHUNKS;
	if (m->never_drained)
		options.pool_bytes = options.max_bytes = NEW_CHUNKS;
	options.flags |= MT_SHM_MMAP_EVENTS;
	m->pid = fork();
	bench_require(m->pid >= 0, "fork");
	if (m->pid == 0)
		become_child(way, m->recording ? session : NULL, orders, answers);
	close(orders[0]);
	close(answers[1]);
	m->orders = orders[1];
	m->answers = answers[0];
	if (m->recording)
		bench_require(mt_test_session_welcome(listener, &options, &hello, &shm) == 0 &&
				      mt_consumer_init(&m->consumer, &shm) == 0,
			      "meeting the library (is it built?)");
}

static void stop(struct measured *m)
{
	if (m->pid == 0)
		return;
	close(m->orders);
	close(m->answers);
	waitpid(m->pid, NULL, 0);
	if (m->recording)
		mt_consumer_fini(&m->consumer);
}

static void drain(struct measured *m)
{
	struct mt_thread_claim claim;
	uint32_t i;

	mt_consumer_scan_threads(&m->consumer);
	while (mt_consumer_next_thread(&m->consumer, &claim)) {
		bench_require(m->stream_count < STREAMS_MAX, "room for the streams");
		mt_stream_init(&m->streams[m->stream_count++], claim.slot);
	}
	for (i = 0; i < m->stream_count; i++) {
		struct mt_stream *stream = &m->streams[i];

		bench_require(mt_stream_note(&m->consumer, stream) == 0, "reading a stream");
		while (stream->taken < stream->seen) {
			if (stream->read == stream->end) {
				mt_stream_advance(&m->consumer, stream);
				continue;
			}
			/* As a reader does that has work of its own: each line once. */
			(void)mt_load_relaxed(&stream->read->stamp);
			stream->taken++;
			stream->read++;
		}
	}
	mt_consumer_settle(&m->consumer, mt_clock_monotonic_ns(), false);
}

/* Drains what is left, and frees the slots of the threads and processes that a pass made. */
static void clean_up(struct measured *m)
{
	struct mt_proc_claim claim;

	drain(m);
	drain(m); /* gives back what the first turn has read */
	while (m->stream_count > 1)
		mt_consumer_retire_thread(&m->consumer, &m->streams[--m->stream_count]);
	mt_consumer_scan_procs(&m->consumer);
	while (mt_consumer_next_proc(&m->consumer, &claim)) {
		if (claim.parent != 0)
			mt_consumer_retire_proc(&m->consumer, claim.slot);
	}
}

static void require_nothing_lost(const struct measured *m)
{
	uint64_t lost[8] = { 0 };
	uint64_t sum = 0;
	uint32_t i;

	mt_consumer_image_lost(&m->consumer, lost);
	for (i = 0; i < m->stream_count; i++)
		mt_consumer_thread_lost(&m->consumer, m->streams[i].slot, lost);
	for (i = 0; i < MT_LOST_CAUSES; i++)
		sum += lost[i];
	bench_require(sum == 0, "recording without a loss");
}

static double run_pass(const struct row *row)
{
	struct measured *m = &measured[row->way];
	struct pollfd poller = { .fd = m->answers, .events = POLLIN };
	/* The sidecar's pace when there is little to do. */
	const struct timespec pace = { .tv_nsec = 50000 };
	uint64_t ns;

	bench_require(write(m->orders, &row->pass, 1) == 1, "pipe");
	while (ppoll(&poller, 1, row->drained ? &pace : NULL, NULL) == 0)
		drain(m);
	bench_require(read(m->answers, &ns, sizeof(ns)) == sizeof(ns),
		      "a measured process that lives");
	if (m->recording) {
		require_nothing_lost(m);
		if (!m->never_drained)
			clean_up(m);
	}
	if (ns == BENCH_HOOK_ABSENT)
		return -1;
	return (double)ns / bench_hook_units(row->pass);
}

static void add(const char *what, char pass, const char *how, enum way way, bool drained)
{
	const char *filter = getenv("BENCH_FILTER");
	struct row *row = &rows[row_count];
	int i;

	bench_require(row_count < (int)(sizeof(rows) / sizeof(rows[0])), "room for the row");
	memset(row, 0, sizeof(*row));
	snprintf(row->name, sizeof(row->name), "%s: %s", what, how);
	row->pass = pass;
	row->way = way;
	row->drained = drained;
	if (filter != NULL && way != WAY_BARE && strstr(row->name, filter) == NULL)
		return;
	for (i = 0; i < row_count; i++) {
		if (rows[i].pass == pass && rows[i].way == WAY_BARE)
			row->bare = &rows[i];
	}
	row_count++;
}

static void add_steps(const char *what, char pass)
{
	static const char *const names[BENCH_STEPS] = {
		"empty interposer",   "+ record, chunk-full check",
		"+ publish",	      "+ guard",
		"+ recording flag",   "+ fork word",
		"+ RDTSC both sides", "+ RDTSCP on malloc",
	};
	int step;

	add(what, pass, "bare", WAY_BARE, false);
	for (step = 0; step < BENCH_STEPS; step++)
		add(what, pass, names[step], (enum way)(WAY_STEPS + step), false);
	add(what, pass, "ours, paused", WAY_OURS, false);
	if (other != NULL)
		add(what, pass, "other, paused", WAY_OTHER, false);
	add(what, pass, "ours, drained", WAY_OURS, true);
	add(what, pass, "ours, new chunks", WAY_NEW_CHUNKS, false);
	add(what, pass, "ours, strict", WAY_STRICT, false);
}

static void add_pair(const char *what, char pass)
{
	add(what, pass, "bare", WAY_BARE, false);
	add(what, pass, "ours, paused", WAY_OURS, false);
	if (other != NULL)
		add(what, pass, "other, paused", WAY_OTHER, false);
	add(what, pass, "ours, drained", WAY_OURS, true);
}

static void add_rows(void)
{
	add("clock", BENCH_PASS_CLOCK, "two readings alone", WAY_BARE, false);
	add_steps("tight", BENCH_PASS_TIGHT);
	add_steps("4096 live", BENCH_PASS_RANDOM);
	add_pair("two threads", BENCH_PASS_TWO);
	add_pair("calloc", BENCH_PASS_CALLOC);
	add_pair("realloc", BENCH_PASS_REALLOC);
	add_pair("new, delete", BENCH_PASS_NEW);
	add_pair("mmap, munmap", BENCH_PASS_MMAP);
	add_pair("thread", BENCH_PASS_THREAD);
	add_pair("fork", BENCH_PASS_FORK);
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static void report(const struct row *row, int rounds)
{
	double ns[ROUNDS_MAX], over[ROUNDS_MAX], lowest = 0;
	int i;

	for (i = 0; i < rounds; i++) {
		ns[i] = row->ns[i];
		over[i] = row->bare != NULL ? row->ns[i] - row->bare->ns[i] : 0;
		if (row->bare != NULL && (i == 0 || row->bare->ns[i] < lowest))
			lowest = row->bare->ns[i];
	}
	qsort(ns, (size_t)rounds, sizeof(ns[0]), by_value);
	qsort(over, (size_t)rounds, sizeof(over[0]), by_value);
	lowest = row->bare != NULL ? ns[0] - lowest : 0;
	fprintf(stderr, "%-40s %9.2f %9.2f %9.2f %9.2f %8.2f %8.2f %8.2f\n", row->name,
		ns[rounds / 2], ns[0], ns[rounds - 1], over[rounds / 2], over[rounds / 10],
		over[rounds - 1 - rounds / 10], lowest);
	printf("{\"bench\":\"hook\",\"case\":\"%s\",\"ns\":%.3f,\"ns_low\":%.3f,\"ns_high\":%.3f,"
	       "\"over\":%.3f,\"over_p10\":%.3f,\"over_p90\":%.3f,\"over_low\":%.3f,\"rounds\":%d}"
	       "\n",
	       row->name, ns[rounds / 2], ns[0], ns[rounds - 1], over[rounds / 2],
	       over[rounds / 10], over[rounds - 1 - rounds / 10], lowest, rounds);
}

static int measure(void)
{
	const char *value = getenv("BENCH_ROUNDS");
	int rounds = value != NULL ? atoi(value) : 41;
	int i, round;

	rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
	add_rows();
	for (i = 0; i < row_count; i++) {
		if (measured[rows[i].way].pid == 0)
			start(rows[i].way);
	}
	for (round = -1; round < rounds; round++) { /* the first warms up */
		for (i = 0; i < row_count; i++) {
			double ns = run_pass(&rows[i]);

			rows[i].absent |= ns < 0;
			rows[i].ns[round < 0 ? 0 : round] = ns;
		}
	}
	fprintf(stderr, "%-40s %9s %9s %9s %9s %8s %8s %8s\n", "hook, ns", "median", "low", "high",
		"over bare", "p10", "p90", "low-low");
	for (i = 0; i < row_count; i++) {
		if (rows[i].absent)
			fprintf(stderr, "# %s: does not run here\n", rows[i].name);
		else
			report(&rows[i], rounds);
	}
	for (i = 0; i < WAYS; i++)
		stop(&measured[i]);
	return 0;
}

int main(int argc, char **argv)
{
	const char *module = getenv("MT_BENCH_HOOK_STEPS");
	int option;

	if (module != NULL && argc == 2)
		return bench_hook_child(module, atoi(argv[1]));
	while ((option = getopt(argc, argv, "l:o:s:")) != -1) {
		if (option == 'l')
			library = optarg;
		else if (option == 'o')
			other = optarg;
		else if (option == 's')
			steps = optarg;
		else
			return 2;
	}
	return measure();
}
