/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What reading costs: the replay alone over heaps of several sizes, with one thread and with two
 * (CPU time, and time on the clock), with a flat hash table (no pages, no lazy copy, no prefetch,
 * no order of the file to keep) beside it; a fork of a large heap, with an eager copy beside
 * it; and the commands over a whole file, with its decoding alone beside them. The trace is 48 %
 * mallocs, 42 % frees, 10 % reallocs of random blocks, four threads.
 *
 *   replay [EVENTS [CASE]]
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/artifact_reader.h"
#include "common/artifact_writer.h"
#include "common/frame_enc.h"
#include "tools/command.h"
#include "tools/replay.h"
#include "tools/u64_map.h"

#define REPEATS	   5
#define FRAME	   MT_BATCH_EVENTS
#define EVENTS_MAX 50000000u

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "replay: %s failed\n", what);
	exit(1);
}

static double now_ns(void)
{
	struct timespec ts;

	/* Of this process alone: what else the machine does stays out. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void report(const char *name, const char *way, const char *unit, double *values)
{
	qsort(values, REPEATS, sizeof(*values), by_value);
	printf("{\"bench\":\"replay\",\"case\":\"%s\",\"way\":\"%s\",\"%s\":%.1f,\"min\":%.1f,"
	       "\"max\":%.1f}\n",
	       name, way, unit, values[REPEATS / 2], values[0], values[REPEATS - 1]);
	fflush(stdout);
}

/* A heap that grows to `live` blocks and then stays there, as a source of events. */
struct trace {
	uint64_t state;
	uint64_t *blocks; /* addresses that are live */
	uint64_t *spare;  /* addresses that are not */
	size_t live, live_count, spare_count;
	uint64_t time_ns;
	bool full; /* was, once */
};

static uint64_t random_next(struct trace *trace)
{
	trace->state ^= trace->state << 13;
	trace->state ^= trace->state >> 7;
	trace->state ^= trace->state << 17;
	return trace->state;
}

static struct trace trace_new(size_t live)
{
	struct trace trace = { .state = 88172645463325252ull, .live = live };
	size_t all = live + live / 4 + 64;

	trace.blocks = malloc(all * sizeof(*trace.blocks));
	trace.spare = malloc(all * sizeof(*trace.spare));
	must(trace.blocks && trace.spare, "memory");
	for (size_t i = 0; i < all; i++)
		trace.spare[trace.spare_count++] = 0x550000000000 + (all - i) * 160;
	return trace;
}

static void trace_free(struct trace *trace)
{
	free(trace->blocks);
	free(trace->spare);
}

static uint64_t take(uint64_t *list, size_t *count, uint64_t random)
{
	size_t at = (size_t)(random % *count);
	uint64_t addr = list[at];

	list[at] = list[--*count];
	return addr;
}

static struct mt_event trace_next(struct trace *trace)
{
	uint64_t r = random_next(trace);
	bool full = trace->live_count >= trace->live;
	struct mt_event event = { .pid = 4242, .tid = 4242 + (int32_t)(r >> 60 & 3) };
	uint64_t addr;

	event.timestamp_ns = trace->time_ns += 20 + (r >> 50 & 63);
	event.size = 16 + (r >> 40 & 1023);
	/* The heap first fills; then it stays as it is, and every event is one of the mix. */
	if (full || (trace->full && r % 100 < 42)) {
		trace->full = true;
		event.type = MT_EVENT_FREE;
		event.size = 0;
		event.addr = take(trace->blocks, &trace->live_count, r >> 8);
		trace->spare[trace->spare_count++] = event.addr;
		return event;
	}
	/* What was freed last is taken first, as allocators do. */
	addr = trace->spare[--trace->spare_count];
	event.type = MT_EVENT_MALLOC;
	if (trace->full && r % 100 >= 90) {
		event.type = MT_EVENT_REALLOC;
		event.flags = MT_EVENT_HAS_OLD;
		event.aux = take(trace->blocks, &trace->live_count, r >> 8);
		trace->spare[trace->spare_count++] = event.aux;
	}
	event.addr = addr;
	trace->blocks[trace->live_count++] = addr;
	return event;
}

static struct mt_event *make_events(size_t live, size_t warm, size_t count)
{
	struct trace trace = trace_new(live);
	struct mt_event *events = malloc((warm + count) * sizeof(*events));

	must(events, "memory");
	for (size_t i = 0; i < warm + count; i++)
		events[i] = trace_next(&trace);
	trace_free(&trace);
	return events;
}

static struct mt_replay *replay_new(unsigned threads)
{
	struct mt_replay_options options = { .threads = threads };
	struct mt_replay *replay;

	must(!mt_replay_new(&options, &replay), "mt_replay_new");
	return replay;
}

static void play(struct mt_replay *replay, const struct mt_event *events, size_t count)
{
	for (size_t i = 0; i < count; i += FRAME)
		must(!mt_replay_events(replay, events + i, count - i < FRAME ? count - i : FRAME,
				       i / FRAME, 0),
		     "mt_replay_events");
}

/* The plain way: one flat table of address and size, sized beforehand, nothing else kept. */
struct flat {
	uint64_t *keys, *sizes;
	size_t mask;
	uint64_t live, peak;
};

static size_t flat_slot(const struct flat *flat, uint64_t addr)
{
	size_t slot = mt_u64_hash(addr) & flat->mask;

	while (flat->keys[slot] && flat->keys[slot] != addr)
		slot = (slot + 1) & flat->mask;
	return slot;
}

static void flat_remove(struct flat *flat, uint64_t addr)
{
	size_t hole = flat_slot(flat, addr), slot = hole;

	flat->live -= flat->sizes[hole];
	for (;;) {
		slot = (slot + 1) & flat->mask;
		if (!flat->keys[slot])
			break;
		if (((slot - (mt_u64_hash(flat->keys[slot]) & flat->mask)) & flat->mask) >=
		    ((slot - hole) & flat->mask)) {
			flat->keys[hole] = flat->keys[slot];
			flat->sizes[hole] = flat->sizes[slot];
			hole = slot;
		}
	}
	flat->keys[hole] = 0;
}

static void flat_play(struct flat *flat, const struct mt_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t slot;

		if (events[i].type == MT_EVENT_FREE) {
			flat_remove(flat, events[i].addr);
			continue;
		}
		if (events[i].type == MT_EVENT_REALLOC)
			flat_remove(flat, events[i].aux);
		slot = flat_slot(flat, events[i].addr);
		flat->keys[slot] = events[i].addr;
		flat->sizes[slot] = events[i].size;
		flat->live += events[i].size;
		if (flat->live > flat->peak)
			flat->peak = flat->live;
	}
}

static struct flat flat_new(size_t live)
{
	struct flat flat = { .mask = 64 };

	while (flat.mask < live * 2)
		flat.mask *= 2;
	flat.keys = calloc(flat.mask, sizeof(*flat.keys));
	flat.sizes = calloc(flat.mask--, sizeof(*flat.sizes));
	must(flat.keys && flat.sizes, "memory");
	return flat;
}

/* One replay: what it costs an event, behind the events that fill the heap. */
static void time_replay(unsigned threads, const struct mt_event *events, size_t warm, size_t count,
			double *ret_cpu, double *ret_wall)
{
	struct mt_replay *replay = replay_new(threads);
	double cpu, wall;

	play(replay, events, warm);
	cpu = now_ns();
	wall = wall_ns();
	play(replay, events + warm, count);
	*ret_cpu = (now_ns() - cpu) / (double)count;
	*ret_wall = (wall_ns() - wall) / (double)count;
	mt_replay_free(replay);
}

static void bench_replay(const char *name, size_t live, size_t count)
{
	size_t warm = live;
	struct mt_event *events = make_events(live, warm, count);
	double one_cpu[REPEATS], one_wall[REPEATS], two_cpu[REPEATS], two_wall[REPEATS];
	double flat[REPEATS];

	for (int i = 0; i < REPEATS; i++) {
		struct flat table = flat_new(live);
		double start;

		time_replay(1, events, warm, count, &one_cpu[i], &one_wall[i]);
		time_replay(2, events, warm, count, &two_cpu[i], &two_wall[i]);
		flat_play(&table, events, warm);
		start = now_ns();
		flat_play(&table, events + warm, count);
		flat[i] = (now_ns() - start) / (double)count;
		free(table.keys);
		free(table.sizes);
	}
	report(name, "replay", "ns_per_event", one_cpu);
	report(name, "replay", "wall_ns_per_event", one_wall);
	report(name, "2 threads", "ns_per_event", two_cpu);
	report(name, "2 threads", "wall_ns_per_event", two_wall);
	report(name, "flat", "ns_per_event", flat);
	free(events);
}

static void bench_fork(size_t live)
{
	const unsigned forks = 100;
	struct mt_event *events = malloc(live * sizeof(*events));
	struct flat table = flat_new(live);
	double lazy[REPEATS], eager[REPEATS];

	must(events, "memory");
	for (size_t i = 0; i < live; i++)
		events[i] = (struct mt_event){ .type = MT_EVENT_MALLOC,
					       .pid = 1,
					       .tid = 1,
					       .addr = 64 * (i + 1),
					       .size = 48 };
	flat_play(&table, events, live);
	for (int i = 0; i < REPEATS; i++) {
		struct mt_replay *replay = replay_new(1);
		double start;

		play(replay, events, live);
		start = now_ns();
		for (unsigned k = 0; k < forks; k++) {
			/* The child frees a block, so that it has to have tables of its own. */
			struct mt_event pair[3] = {
				{ .type = MT_EVENT_FORK, .pid = 2, .tid = 2, .aux = 1 },
				{ .type = MT_EVENT_FREE, .pid = 2, .tid = 2, .addr = 64 },
				{ .type = MT_EVENT_EXIT, .pid = 2, .tid = 2 },
			};

			play(replay, pair, 3);
		}
		lazy[i] = (now_ns() - start) / forks / 1e3;
		mt_replay_free(replay);
		start = now_ns();
		for (unsigned k = 0; k < 3; k++) {
			struct flat copy = flat_new(live);

			memcpy(copy.keys, table.keys, (table.mask + 1) * sizeof(*copy.keys));
			memcpy(copy.sizes, table.sizes, (table.mask + 1) * sizeof(*copy.sizes));
			flat_remove(&copy, 64);
			free(copy.keys);
			free(copy.sizes);
		}
		eager[i] = (now_ns() - start) / 3 / 1e3;
	}
	report("fork-4m-live", "lazy", "us_per_fork", lazy);
	report("fork-4m-live", "eager", "us_per_fork", eager);
	free(table.keys);
	free(table.sizes);
	free(events);
}

static int write_file(const struct mt_event *events, size_t count)
{
	struct mt_artifact_writer writer;
	struct mt_frame_enc *encoder;
	int fd = memfd_create("artifact", 0);
	const uint8_t *frame;
	size_t len;

	must(fd >= 0 && !mt_artifact_writer_init(&writer, fd, 0), "memfd");
	must(!mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &encoder), "encoder");
	for (size_t i = 0; i < count; i += FRAME) {
		must(!mt_frame_enc_frame(encoder, events + i, count - i < FRAME ? count - i : FRAME,
					 &frame, &len),
		     "encode");
		must(!mt_artifact_writer_append(&writer, frame, len), "write");
	}
	mt_frame_enc_free(encoder);
	return fd;
}

static void decode_file(const char *path)
{
	struct mt_artifact_reader *reader;
	struct mt_artifact_batch batch;
	struct mt_diag diag;

	must(!mt_artifact_reader_open(path, &reader, &diag), "open");
	while (mt_artifact_reader_next(reader, &batch) > 0)
		;
	mt_artifact_reader_close(reader);
}

/* A command beside the decoding alone: how many times as long, and the file's bytes. */
static void report_command(const char *way, double *ns, double *decode_ns, double bytes_per_event)
{
	qsort(ns, REPEATS, sizeof(*ns), by_value);
	if (!*decode_ns)
		*decode_ns = ns[REPEATS / 2];
	printf("{\"bench\":\"replay\",\"case\":\"file-100k-live\",\"way\":\"%s\","
	       "\"ns_per_event\":%.1f,\"min\":%.1f,\"max\":%.1f,\"ratio\":%.2f,"
	       "\"bytes_per_event\":%.2f}\n",
	       way, ns[REPEATS / 2], ns[0], ns[REPEATS - 1], ns[REPEATS / 2] / *decode_ns,
	       bytes_per_event);
	fflush(stdout);
}

static void bench_commands(size_t count)
{
	static const struct mt_command *const commands[] = { NULL, &mt_cmd_stat, &mt_cmd_verify,
							     &mt_cmd_dump };
	struct mt_event *events = make_events(100000, 0, count);
	int fd = write_file(events, count);
	int out = dup(STDOUT_FILENO);
	double decode_ns = 0;
	int null = open("/dev/null", O_WRONLY);
	char path[64];

	must(out >= 0 && null >= 0, "open");
	free(events);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t c = 0; c < sizeof(commands) / sizeof(commands[0]); c++) {
		char name[] = "memtrack";
		char *argv[] = { name, path, NULL };
		double ns[REPEATS];

		dup2(null, STDOUT_FILENO);
		for (int i = 0; i < REPEATS; i++) {
			double start = now_ns();

			optind = 0;
			if (commands[c])
				must(commands[c]->run(2, argv) == MT_EXIT_DONE, commands[c]->name);
			else
				decode_file(path);
			ns[i] = (now_ns() - start) / (double)count;
		}
		dup2(out, STDOUT_FILENO);
		report_command(commands[c] ? commands[c]->name : "decode", ns, &decode_ns,
			       (double)lseek(fd, 0, SEEK_END) / (double)count);
	}
	close(fd);
	close(out);
	close(null);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		size_t live;
	} heaps[] = {
		{ "4k-live", 4096 },
		{ "100k-live", 100000 },
		{ "1m-live", 1000000 },
		{ "4m-live", 4000000 },
	};
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000000;
	const char *only = argc > 2 ? argv[2] : NULL;

	if (count < 1 || count > EVENTS_MAX) {
		fprintf(stderr, "usage: replay [EVENTS [CASE]]\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i++)
		if (!only || !strcmp(only, heaps[i].name))
			bench_replay(heaps[i].name, heaps[i].live, count);
	if (!only || !strcmp(only, "fork-4m-live"))
		bench_fork(4000000);
	if (!only || !strcmp(only, "file-100k-live"))
		bench_commands(count);
	return 0;
}
