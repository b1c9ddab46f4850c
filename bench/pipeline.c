/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the sidecar costs an event from chunk to file: a thread plays records of four recording
 * threads into a segment as fast as it is let, the engine merges them, workers encode, frames are
 * written. Every combination of stream, place and number of workers, in turns.
 *
 * "wall" is the time from the first record to the last written byte, "cpu" the processor time of
 * all threads but the one that plays; nanoseconds an event, median of the repeats and their spread.
 * A table goes to stderr, one JSON line a case to stdout. BENCH_ROUNDS: repeats (7).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench/harness.h"
#include "bench/trace.h"
#include "common/artifact_writer.h"
#include "common/chunk_producer.h"
#include "common/clock.h"
#include "sidecar/encoder.h"
#include "sidecar/order.h"

#define EVENTS	     2000000u
#define TRACE_TID    104711 /* of the trace's first thread */
#define THREADS	     4
#define SPREAD_BITS  27 /* random addresses: 16-byte places in 2 GiB */
#define BUSY_EVENTS  4096
#define REST_NS	     50000
#define REPEATS_MOST 31

struct step {
	struct mt_rec rec;
	unsigned thread;
};

struct stream {
	const char *name;
	struct step *steps;
	size_t count;
	uint64_t events, ticks;
};

struct pipeline_case {
	const struct stream *stream;
	bool to_file;
	unsigned workers;
	double wall[REPEATS_MOST], cpu[REPEATS_MOST];
};

struct player {
	const struct stream *stream;
	struct mt_producer producer;
	struct mt_writer writers[THREADS];
	uint64_t base; /* counter at the stream's beginning */
	uint64_t cpu_ns;
};

/*
 * Threads that lend their numbers: the engine looks into /proc when chunks are scarce, and a stream
 * whose thread is not there is at its end.
 */
static int32_t lent_tids[THREADS];
static pthread_barrier_t lent;

static void *lend(void *argument)
{
	*(int32_t *)argument = (int32_t)gettid();
	pthread_barrier_wait(&lent);
	for (;;)
		pause();
	return NULL;
}

static void lend_tids(void)
{
	pthread_t thread;

	pthread_barrier_init(&lent, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++)
		bench_require(pthread_create(&thread, NULL, lend, &lent_tids[i]) == 0,
			      "pthread_create");
	pthread_barrier_wait(&lent);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	bench_require(clock_gettime(clock, &now) == 0, "clock_gettime");
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The same block has the same address everywhere, but no two of them are near each other. */
static uint64_t spread(uint64_t addr, uint64_t first)
{
	uint64_t place = (addr - first) / 16;

	bench_require(place < UINT64_C(1) << SPREAD_BITS, "a trace within 2 GiB");
	place = place * UINT64_C(0x9e3779b97f4a7c15) & ((UINT64_C(1) << SPREAD_BITS) - 1);
	return UINT64_C(0x7f0000000000) + place * 16;
}

static void add(struct stream *stream, const struct mt_event *event, enum mt_rec_kind kind,
		uint64_t addr)
{
	uint64_t size = kind == MT_REC_FREE || kind == MT_REC_REALLOC_BEGIN ? 0 : event->size;

	stream->steps[stream->count++] = (struct step){
		.rec = { .stamp = event->timestamp_ns,
			 .addr = addr,
			 .size_kind = size << 8 | kind },
		.thread = (unsigned)(event->tid - TRACE_TID),
	};
}

/* Records of the events; stamps become counter values from 0 on. */
static void make_stream(struct stream *stream, const struct mt_clock *clock, bool spread_out)
{
	struct mt_event *events = trace_new(TRACE_REAL, EVENTS);
	uint64_t lowest = UINT64_MAX;

	stream->steps = calloc(2 * EVENTS, sizeof(*stream->steps));
	bench_require(stream->steps != NULL, "calloc");
	for (size_t i = 0; i < EVENTS; i++)
		lowest = events[i].addr < lowest ? events[i].addr : lowest;
	for (size_t i = 0; i < EVENTS; i++) {
		struct mt_event *e = &events[i];
		uint64_t addr = spread_out ? spread(e->addr, lowest) : e->addr, old = e->aux;

		e->timestamp_ns -= i ? events[0].timestamp_ns : 0;
		if (e->type == MT_EVENT_REALLOC)
			add(stream, e, MT_REC_REALLOC_BEGIN,
			    spread_out ? spread(old, lowest) : old);
		add(stream, e,
		    e->type == MT_EVENT_REALLOC ? MT_REC_REALLOC_END
		    : e->type == MT_EVENT_FREE	? MT_REC_FREE
						: MT_REC_MALLOC,
		    addr);
	}
	stream->steps[0].rec.stamp = 0;
	for (size_t i = 0; i < stream->count; i++)
		stream->steps[i].rec.stamp = mt_clock_ticks(clock, stream->steps[i].rec.stamp);
	stream->ticks = stream->steps[stream->count - 1].rec.stamp;
	stream->events = EVENTS;
	free(events);
}

static void *play(void *argument)
{
	struct player *player = argument;
	const struct stream *stream = player->stream;

	for (size_t i = 0; i < stream->count; i++) {
		const struct step *step = &stream->steps[i];
		struct mt_writer *writer = &player->writers[step->thread];

		if (writer->next == writer->end)
			bench_require(mt_writer_turn_over(&player->producer, writer) == 0,
				      "getting a chunk");
		mt_writer_put(writer, player->base + step->rec.stamp, step->rec.addr,
			      step->rec.size_kind >> 8,
			      (enum mt_rec_kind)(step->rec.size_kind & 0xff));
	}
	player->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void open_segment(struct player *player, struct mt_shm *shm, void **ret_map)
{
	struct mt_shm_options options = {
		.pool_bytes = 8 << 20,
		.max_bytes = 64 << 20,
		.max_map_bytes = UINT64_MAX,
		.counter = mt_clock_detect(),
		.max_wait_ms = 10000,
	};
	struct mt_proc_birth birth = { .pid = getpid(), .tid = lent_tids[0], .stamp = 1 };
	uint32_t proc;

	bench_require(mt_shm_create(&options, shm) == 0, "mt_shm_create");
	*ret_map =
		mmap(NULL, shm->layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, 0);
	bench_require(*ret_map != MAP_FAILED, "mmap");
	bench_require(mt_producer_open(*ret_map, shm->layout.total_bytes, &player->producer) == 0,
		      "mt_producer_open");
	player->producer.now_ns = mt_clock_monotonic_ns;
	proc = mt_producer_claim_proc(&player->producer, &birth);
	for (unsigned i = 0; i < THREADS; i++)
		bench_require(mt_writer_claim(&player->producer, &player->writers[i], proc,
					      lent_tids[i], i + 1, 1),
			      "mt_writer_claim");
}

static int open_output(bool to_file)
{
	char path[] = "/tmp/bench-pipeline-XXXXXX";
	int fd = to_file ? mkstemp(path) : open("/dev/null", O_WRONLY);

	bench_require(fd >= 0, "opening the output");
	if (to_file)
		unlink(path);
	return fd;
}

/* Rounds as the recorder makes them, until all events are out. */
static void merge_all(struct mt_order *order, uint64_t events)
{
	struct timespec rest = { .tv_nsec = REST_NS };
	struct mt_order_stats stats;

	do {
		if (mt_order_round(order) < BUSY_EVENTS)
			nanosleep(&rest, NULL);
		mt_order_stats(order, &stats);
	} while (stats.events < events + 1); /* the Exec */
	bench_require(stats.parked + stats.unknown_frees + stats.live_allocs == 0, "the order");
	mt_order_finish(order);
}

static void run_once(struct pipeline_case *c, unsigned repeat)
{
	struct player player = { .stream = c->stream };
	struct mt_encoder_options encoder_options = { .workers = c->workers,
						      .in_flight = 2 * c->workers + 2,
						      .level = -1,
						      .codec = MT_CODEC_FUSED };
	struct mt_order_options options = {
		.counter = mt_clock_detect(),
		.max_liveness_bytes = UINT64_C(1) << 30,
		.max_chunk_bytes = 64 << 20,
		.flush_ns = UINT64_C(1000000000),
	};
	struct mt_hello hello = { .pid = getpid(), .time_ns = 1 };
	struct mt_encoder_stats stats;
	struct mt_artifact_writer writer;
	int fd = open_output(c->to_file);
	struct mt_order *order;
	struct mt_shm shm;
	pthread_t thread;
	uint64_t wall, cpu;
	void *map;

	open_segment(&player, &shm, &map);
	bench_require(mt_artifact_writer_init(&writer, fd, 0) == 0, "mt_artifact_writer_init");
	wall = clock_ns(CLOCK_MONOTONIC);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	bench_require(mt_encoder_new(&encoder_options, &writer, &options.encoder) == 0,
		      "mt_encoder_new");
	bench_require(mt_order_new(&options, &order) == 0, "mt_order_new");
	bench_require(mt_order_add_image(order, &shm, getpid(), &hello) == 0, "mt_order_add_image");
	player.base = mt_clock_read(options.counter) - c->stream->ticks;
	bench_require(pthread_create(&thread, NULL, play, &player) == 0, "pthread_create");
	merge_all(order, c->stream->events);
	mt_encoder_stop(options.encoder, &stats);
	pthread_join(thread, NULL);
	wall = clock_ns(CLOCK_MONOTONIC) - wall;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu - player.cpu_ns;
	bench_require(!stats.error && stats.events_written == c->stream->events + 1, "writing");
	c->wall[repeat] = (double)wall / (double)c->stream->events;
	c->cpu[repeat] = (double)cpu / (double)c->stream->events;
	mt_order_free(order);
	mt_encoder_free(options.encoder);
	munmap(map, player.producer.header->total_bytes);
	close(fd);
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void print_case(struct pipeline_case *c, unsigned n)
{
	const char *place = c->to_file ? "file" : "/dev/null";

	qsort(c->wall, n, sizeof(c->wall[0]), by_value);
	qsort(c->cpu, n, sizeof(c->cpu[0]), by_value);
	fprintf(stderr,
		"%-18s %-10s %u workers  wall %6.1f [%6.1f .. %6.1f]  cpu %6.1f [%6.1f .. %6.1f]\n",
		c->stream->name, place, c->workers, c->wall[n / 2], c->wall[0], c->wall[n - 1],
		c->cpu[n / 2], c->cpu[0], c->cpu[n - 1]);
	printf("{\"bench\":\"pipeline\",\"stream\":\"%s\",\"to\":\"%s\",\"workers\":%u,"
	       "\"ns_per_event\":%.2f,\"min\":%.2f,\"max\":%.2f,\"cpu_ns_per_event\":%.2f,"
	       "\"cpu_min\":%.2f,\"cpu_max\":%.2f,\"core_seconds\":%.3f}\n",
	       c->stream->name, place, c->workers, c->wall[n / 2], c->wall[0], c->wall[n - 1],
	       c->cpu[n / 2], c->cpu[0], c->cpu[n - 1],
	       c->cpu[n / 2] * (double)c->stream->events / 1e9);
}

int main(void)
{
	static struct stream streams[2] = { { .name = "real-like" },
					    { .name = "random addresses" } };
	static struct pipeline_case cases[8];
	const char *rounds = getenv("BENCH_ROUNDS");
	unsigned repeats = rounds ? (unsigned)strtoul(rounds, NULL, 10) : 7, i;
	struct mt_clock clock;

	lend_tids();
	repeats = repeats < 1 ? 1 : repeats > REPEATS_MOST ? REPEATS_MOST : repeats;
	bench_require(mt_clock_init(&clock, mt_clock_detect()) == 0, "mt_clock_init");
	for (i = 0; i < 2; i++)
		make_stream(&streams[i], &clock, i == 1);
	for (i = 0; i < 8; i++)
		cases[i] = (struct pipeline_case){ .stream = &streams[i / 4],
						   .to_file = i / 2 % 2 == 1,
						   .workers = 1 + i % 2 };
	for (unsigned repeat = 0; repeat < repeats; repeat++)
		for (i = 0; i < 8; i++)
			run_once(&cases[i], repeat);
	for (i = 0; i < 8; i++)
		print_case(&cases[i], repeats);
	return 0;
}
