/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An order engine with both ends in hand: segments whose streams the test writes with stamps of its
 * own choice, and an encoder that keeps the events it is given.
 */
#ifndef MT_TESTS_UNIT_ORDER_SUPPORT_H
#define MT_TESTS_UNIT_ORDER_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/chunk_producer.h"
#include "common/clock.h"
#include "common/event.h"
#include "common/run_meta.h"
#include "sidecar/order.h"

#define BENCH_PID 4000000 /* above any real pid of a test machine */

struct bench {
	struct mt_order *order;
	struct mt_event *events; /* all that was submitted, paths copied */
	size_t count, space;
	struct mt_kev kernel[64]; /* given out by the next drain */
	unsigned kernel_count;
	uint64_t base; /* stamps of tests count from here */
};

/* One image of the program, as its shim sees it. */
struct bench_image {
	struct mt_producer producer;
	uint32_t proc; /* + 1: the root's slot */
	int fd;
};

struct bench_options {
	bool kernel_events;
	uint64_t max_liveness_bytes; /* 0: no limit that matters */
};

void bench_open(struct bench *bench, const struct bench_options *options);
void bench_close(struct bench *bench);

/* Registers an image of `pid` and claims its process slot. */
void bench_image(struct bench *bench, struct bench_image *image, int32_t pid, uint32_t hello_flags);

/* A thread of a process slot (+ 1). */
struct mt_writer bench_thread(const struct bench_image *image, uint32_t proc, int32_t tid);

/* Appends a record with the stamp base + at. */
void bench_put(struct bench *bench, const struct bench_image *image, struct mt_writer *writer,
	       uint64_t at, enum mt_rec_kind kind, uint64_t addr, uint64_t size);

/* Rounds until three in a row were idle. */
void bench_run(struct bench *bench);

/* Finishes and gives the statistics. */
struct mt_order_stats bench_finish(struct bench *bench);

/*
 * The heap events, and Fork, Exec and Exit, as text: "m" Malloc, "c" Calloc, "a" AlignedAlloc, "f"
 * Free, "r" Realloc ("r10>20" with an old address), "+" Fork (pid), "x" Exec (pid), "-" Exit (pid),
 * each with its address in hex, by a space apart. Valid until the next call.
 */
const char *bench_text(const struct bench *bench);

/* Replays all events; returns how many contradict the live set of their process. */
unsigned bench_contradictions(const struct bench *bench);

#endif
