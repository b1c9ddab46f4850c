// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The encoder under load: frames stand in the file in the order of submission with any number of
 * workers, no batch is lost or written twice, memory stays within in_flight batches, and after a
 * failed write everything submitted is counted as lost and the submitter is never held up.
 * Plain main() since criterion does not run under TSan.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/artifact_reader.h"
#include "common/artifact_writer.h"
#include "sidecar/encoder.h"

#define BATCHES	  200u
#define IN_FLIGHT 4u

static int number, failed;

static void check(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
	failed += !good;
}

/* Sizes of batches that are far apart, so that workers overtake each other. */
static uint32_t batch_events(uint32_t i)
{
	return i % 7 == 0 ? 20000 : i % 3 == 0 ? 0 : 1 + i;
}

static uint64_t submit_all(struct mt_encoder *encoder, struct mt_batch **seen, unsigned *n_seen)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < BATCHES; i++) {
		struct mt_batch *batch = mt_encoder_take(encoder);
		uint32_t n = batch_events(i);
		unsigned known = 0;

		while (known < *n_seen && seen[known] != batch)
			known++;
		if (known == *n_seen && known < BATCHES)
			seen[(*n_seen)++] = batch;
		for (uint32_t k = 0; k < n; k++, total++)
			batch->events[batch->count++] = (struct mt_event){
				.type = MT_EVENT_FREE,
				.addr = total,
				.timestamp_ns = total,
				.pid = 1,
				.tid = 1,
			};
		mt_encoder_submit(encoder, batch);
	}
	return total;
}

static bool file_counts_up(int fd, uint64_t total)
{
	struct mt_artifact_reader *reader = NULL;
	struct mt_artifact_batch batch;
	struct mt_diag diag;
	uint64_t next = 0;
	bool good = true;

	if (mt_artifact_reader_open_fd(fd, &reader, &diag))
		return false;
	while (mt_artifact_reader_next(reader, &batch) == 1)
		for (size_t i = 0; i < batch.n; i++)
			good &= batch.events[i].addr == next++;
	good &= next == total && mt_artifact_reader_diag(reader)->kind == MT_DIAG_NONE;
	mt_artifact_reader_close(reader);
	return good;
}

/* An encoder that writes into a file of its own. */
struct run {
	struct mt_artifact_writer writer;
	struct mt_encoder *encoder;
	struct mt_encoder_stats stats;
	int fd;
};

static bool run_start(struct run *run, const struct mt_encoder_options *options, uint64_t max_bytes)
{
	run->fd = memfd_create("artifact", MFD_CLOEXEC);
	if (run->fd >= 0 && !mt_artifact_writer_init(&run->writer, run->fd, max_bytes) &&
	    !mt_encoder_new(options, &run->writer, &run->encoder))
		return true;
	check(false, "the encoder starts");
	return false;
}

/* Leaves the file at its beginning. */
static void run_stop(struct run *run)
{
	mt_encoder_stop(run->encoder, &run->stats);
	mt_encoder_free(run->encoder);
	lseek(run->fd, 0, SEEK_SET);
}

static void order_with(unsigned workers, enum mt_codec codec)
{
	struct mt_encoder_options options = {
		.workers = workers, .in_flight = IN_FLIGHT, .level = -1, .codec = codec
	};
	struct mt_batch *seen[BATCHES];
	unsigned n_seen = 0;
	struct run run;
	uint64_t total;

	if (!run_start(&run, &options, 0))
		return;
	total = submit_all(run.encoder, seen, &n_seen);
	run_stop(&run);
	printf("# %u workers, %llu events, %u batches in memory\n", workers,
	       (unsigned long long)total, n_seen);
	check(run.stats.events_written == total && !run.stats.events_lost && !run.stats.error,
	      "all events are counted as written");
	check(n_seen <= IN_FLIGHT, "no more batches than in flight");
	check(file_counts_up(run.fd, total), "the file has them in order of submission");
}

static void failing_write(void)
{
	struct mt_encoder_options options = { .workers = 2, .in_flight = IN_FLIGHT, .level = -1 };
	struct mt_batch *seen[BATCHES];
	unsigned n_seen = 0;
	struct run run;
	uint64_t total;

	if (!run_start(&run, &options, 500000))
		return;
	total = submit_all(run.encoder, seen, &n_seen);
	run_stop(&run);
	check(run.stats.error == EFBIG && run.stats.bytes_written <= 500000,
	      "the limit of the file holds");
	check(run.stats.events_written && run.stats.events_lost &&
		      run.stats.events_written + run.stats.events_lost == total,
	      "written and lost together are what was submitted");
	check(file_counts_up(run.fd, run.stats.events_written),
	      "what was written is whole and in order");
}

static void no_events(void)
{
	struct mt_encoder_options options = { .workers = 1, .in_flight = 2, .level = -1 };
	struct run run;

	if (!run_start(&run, &options, 0))
		return;
	mt_encoder_submit(run.encoder, mt_encoder_take(run.encoder));
	run_stop(&run);
	check(run.stats.frames == 1 && run.stats.bytes_written > 0,
	      "a run without events has one frame");
	check(file_counts_up(run.fd, 0), "which is empty");
}

int main(void)
{
	order_with(1, MT_CODEC_FUSED);
	order_with(2, MT_CODEC_ZSTD);
	order_with(2, MT_CODEC_FUSED);
	order_with(5, MT_CODEC_FUSED);
	failing_write();
	no_events();
	printf("1..%d\n", number);
	return failed != 0;
}
