/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shim_peer [options] -- COMMAND...: the smallest thing that the preloaded library can talk to. It
 * makes a session, runs COMMAND with LIBRARY preloaded, hands out segments, and reads them until
 * COMMAND has ended. Then it writes what it read to OUT, one line each:
 *
 *   image I pid=P flags=F
 *   proc I.S pid=P parent=S' fork=N
 *   rec I.S TID STAMP KIND ADDR SIZE          in the order of the stamps
 *   lost I.S CAUSE COUNT                      of a process and its threads
 *   lost I.gone CAUSE COUNT                   of threads that ended before
 *   lost I.- CAUSE COUNT                      of no slot
 *
 *   -l LIBRARY  -o OUT  -b POOL_KIB  -p (drop)  -s (strict)  -m (mmap events)  -n (no follow)
 *   -w MAX_WAIT_MS  -q (stop reading: what a stopped sidecar looks like)
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/chunk_consumer.h"
#include "common/clock.h"
#include "common/control.h"
#include "tests/e2e/shim_session.h"

#define IMAGES_MAX 20000

struct line {
	struct mt_rec rec;
	uint32_t image;
	uint32_t proc;
	int32_t tid;
};

struct thread {
	struct mt_stream stream;
	struct mt_thread_claim claim;
};

struct image {
	struct mt_consumer consumer;
	struct thread *threads;
	uint32_t thread_count;
	struct mt_proc_claim *procs;
	uint32_t proc_count;
	uint64_t retired_lost[8]; /* by threads that are gone */
	int32_t pid;
	uint32_t flags;
};

static struct image *images[IMAGES_MAX];
static uint32_t image_count;
static struct line *lines;
static size_t line_count, line_space;
static struct mt_shm_options shm_options = { .pool_bytes = 8 << 20,
					     .max_bytes = 64 << 20,
					     .flags = MT_SHM_FOLLOW_ENV,
					     .max_wait_ms = 10000 };
static FILE *out;
static bool grows = true;

static void *grow(void *array, size_t count, size_t bytes_each)
{
	void *larger = realloc(array, count * bytes_each);

	if (larger == NULL) {
		perror("shim_peer");
		exit(125);
	}
	return larger;
}

static void keep(uint32_t image, const struct thread *thread, struct mt_rec rec)
{
	if (line_count == line_space) {
		line_space = line_space != 0 ? line_space * 2 : 4096;
		lines = grow(lines, line_space, sizeof(*lines));
	}
	lines[line_count++] = (struct line){
		.rec = rec, .image = image, .proc = thread->claim.proc, .tid = thread->claim.tid
	};
}

static size_t read_stream(uint32_t index, struct image *image, struct thread *thread)
{
	struct mt_stream *stream = &thread->stream;
	size_t count = 0;

	if (mt_stream_note(&image->consumer, stream) != 0)
		fprintf(out, "corrupt %u.%u\n", index, thread->claim.proc);
	while (stream->taken < stream->seen) {
		if (stream->read == stream->end) {
			mt_stream_advance(&image->consumer, stream);
			continue;
		}
		keep(index, thread, mt_stream_peek(stream));
		stream->read++;
		stream->taken++;
		count++;
	}
	return count;
}

/*
 * A thread whose control block a newer one has is gone: its chunks and its slot serve others. A
 * scan does not find claims in their order, so an older one is left for a later turn.
 */
static void retire_before(uint32_t index, struct image *image, const struct mt_thread_claim *newer)
{
	uint32_t i;

	for (i = 0; i < image->thread_count; i++) {
		struct thread *old = &image->threads[i];

		if (old->claim.proc != newer->proc || old->claim.tcb != newer->tcb ||
		    old->claim.claim_stamp > newer->claim_stamp)
			continue;
		(void)read_stream(index, image, old); /* how many does not matter */
		mt_consumer_thread_lost(&image->consumer, old->claim.slot, image->retired_lost);
		mt_consumer_retire_thread(&image->consumer, &old->stream);
		*old = image->threads[--image->thread_count];
		i--;
	}
}

static size_t read_image(uint32_t index)
{
	struct image *image = images[index];
	struct mt_thread_claim thread;
	struct mt_proc_claim proc;
	size_t count = 0;
	uint32_t i;

	(void)mt_consumer_scan_threads(&image->consumer);
	while (mt_consumer_next_thread(&image->consumer, &thread)) {
		retire_before(index, image, &thread);
		image->threads =
			grow(image->threads, image->thread_count + 1, sizeof(*image->threads));
		image->threads[image->thread_count] = (struct thread){ .claim = thread };
		mt_stream_init(&image->threads[image->thread_count++].stream, thread.slot);
	}
	(void)mt_consumer_scan_procs(&image->consumer);
	while (mt_consumer_next_proc(&image->consumer, &proc)) {
		image->procs = grow(image->procs, image->proc_count + 1, sizeof(*image->procs));
		image->procs[image->proc_count++] = proc;
	}
	for (i = 0; i < image->thread_count; i++)
		count += read_stream(index, image, &image->threads[i]);
	mt_consumer_settle(&image->consumer, mt_clock_monotonic_ns(), false);
	return count;
}

static void welcome(int listener)
{
	struct mt_hello hello;
	struct image *image;
	struct mt_shm shm;

	if (mt_test_session_welcome(listener, &shm_options, &hello, &shm) != 0)
		return;
	if (image_count == IMAGES_MAX) {
		mt_shm_destroy(&shm);
		return;
	}
	image = grow(NULL, 1, sizeof(*image));
	memset(image, 0, sizeof(*image));
	if (mt_consumer_init(&image->consumer, &shm) != 0)
		exit(125);
	if (grows)
		mt_consumer_set_limit(&image->consumer, shm.layout.chunk_count);
	image->pid = hello.pid;
	image->flags = hello.flags;
	images[image_count++] = image;
}

static pid_t start(char **command, const char *library, const char *session)
{
	const char *theirs = getenv("LD_PRELOAD");
	char preload[8192];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	snprintf(preload, sizeof(preload), "%s%s%s", library, theirs != NULL ? ":" : "",
		 theirs != NULL ? theirs : "");
	setenv("LD_PRELOAD", preload, 1);
	setenv(MT_ENV_SESSION, session, 1);
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

static int by_stamp(const void *left, const void *right)
{
	const struct line *a = left, *b = right;

	if (a->rec.stamp != b->rec.stamp)
		return a->rec.stamp < b->rec.stamp ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void print_lost(uint32_t index, const char *proc, const uint64_t *lost)
{
	int cause;

	for (cause = 0; cause < MT_LOST_CAUSES; cause++) {
		if (lost[cause] != 0)
			fprintf(out, "lost %u.%s %d %" PRIu64 "\n", index, proc, cause,
				lost[cause]);
	}
}

static void print_image(uint32_t index)
{
	struct image *image = images[index];
	uint64_t lost[8] = { 0 };
	uint32_t i, j;

	fprintf(out, "image %u pid=%d flags=%u\n", index, image->pid, image->flags);
	for (i = 0; i < image->proc_count; i++) {
		const struct mt_proc_claim *proc = &image->procs[i];
		uint64_t proc_lost[8] = { 0 };
		char name[16];

		fprintf(out, "proc %u.%u pid=%d parent=%u fork=%" PRIu64 "\n", index, proc->slot,
			proc->pid, proc->parent, proc->fork_number);
		mt_consumer_proc_lost(&image->consumer, proc->slot, proc_lost);
		for (j = 0; j < image->thread_count; j++) {
			if (image->threads[j].claim.proc == proc->slot)
				mt_consumer_thread_lost(&image->consumer,
							image->threads[j].claim.slot, proc_lost);
		}
		snprintf(name, sizeof(name), "%u", proc->slot);
		print_lost(index, name, proc_lost);
	}
	print_lost(index, "gone", image->retired_lost);
	mt_consumer_image_lost(&image->consumer, lost);
	print_lost(index, "-", lost);
}

static void print_lines(void)
{
	static const char *const names[MT_REC_KINDS] = {
		"none",	   "malloc", "calloc", "aligned", "free", "rbegin",   "rend",
		"rfailed", "rfreed", "mmap",   "munmap",  "fork", "forkdone",
	};
	size_t i;

	qsort(lines, line_count, sizeof(*lines), by_stamp);
	for (i = 0; i < line_count; i++) {
		const struct line *line = &lines[i];
		uint8_t kind = (uint8_t)line->rec.size_kind;

		fprintf(out, "rec %u.%u %d %" PRIu64 " %s 0x%" PRIx64 " %" PRIu64 "\n", line->image,
			line->proc, line->tid, line->rec.stamp,
			kind < MT_REC_KINDS ? names[kind] : "bad", line->rec.addr,
			line->rec.size_kind >> 8);
	}
}

static void serve(int listener, pid_t pid, bool read_on, int *ret_status)
{
	bool ended = false;
	uint32_t i;

	for (;;) {
		struct pollfd poller = { .fd = listener, .events = POLLIN };
		size_t count = 0;

		while (poll(&poller, 1, 0) > 0)
			welcome(listener);
		for (i = 0; i < image_count && (read_on || ended); i++)
			count += read_image(i);
		if (ended && count == 0)
			return;
		if (count == 0)
			poll(&poller, 1, 1);
		ended = ended || waitpid(pid, ret_status, WNOHANG) == pid;
	}
}

int main(int argc, char **argv)
{
	const char *library = "libmemtrack-preload.so", *path = "/dev/null";
	bool read_on = true;
	char session[128];
	int option, listener, status = 0;
	uint32_t i;
	pid_t pid;

	shm_options.counter = mt_clock_detect();
	while ((option = getopt(argc, argv, "+l:o:b:psmnw:q")) != -1) {
		switch (option) {
		case 'l':
			library = optarg;
			break;
		case 'o':
			path = optarg;
			break;
		case 'b':
			shm_options.pool_bytes = strtoull(optarg, NULL, 10) << 10;
			shm_options.max_bytes = shm_options.pool_bytes;
			grows = false;
			break;
		case 'p':
			shm_options.policy = MT_POLICY_DROP;
			break;
		case 's':
			shm_options.flags |= MT_SHM_STRICT;
			break;
		case 'm':
			shm_options.flags |= MT_SHM_MMAP_EVENTS;
			break;
		case 'n':
			shm_options.flags &= ~(uint32_t)MT_SHM_FOLLOW_ENV;
			break;
		case 'w':
			shm_options.max_wait_ms = (uint32_t)atoi(optarg);
			break;
		case 'q':
			read_on = false;
			break;
		default:
			return 2;
		}
	}
	out = fopen(path, "we");
	listener = mt_test_session_open(session, sizeof(session));
	if (out == NULL || listener < 0 || optind == argc) {
		perror("shim_peer");
		return 125;
	}
	pid = start(argv + optind, library, session);
	serve(listener, pid, read_on, &status);
	for (i = 0; i < image_count; i++)
		print_image(i);
	print_lines();
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
