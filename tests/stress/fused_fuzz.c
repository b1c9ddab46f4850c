/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random frames through the fused writer, each compared with the serializer:
 * 2 million events, 100 million with MT_LONG set. A first argument is the seed
 * to begin with.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/fused_support.h"

static struct mt_event events[MT_BATCH_EVENTS];

static size_t frame_size(uint64_t *state)
{
	uint64_t v = fused_rnd(state) >> 8;

	switch (fused_rnd(state) >> 60) {
	case 0:
		return v % (MT_BATCH_EVENTS + 1);
	case 1:
	case 2:
	case 3:
		return v % 8000;
	default:
		return v % 300;
	}
}

static const char *hostile(struct fused_checker *checker, uint64_t seed, uint64_t limit)
{
	struct hostile_store *store = hostile_store_new(seed);
	uint64_t state = seed + 1, done = 0;
	const char *wrong = store ? NULL : "out of memory";

	while (!wrong && done < limit) {
		size_t n = frame_size(&state);

		hostile_fill(store, events, n, (fused_rnd(&state) >> 60) == 0);
		wrong = fused_check(checker, events, n);
		done += n;
	}
	hostile_store_free(store);
	return wrong;
}

static const char *heap(struct fused_checker *checker, uint64_t seed, uint64_t limit)
{
	const unsigned int sites[] = { 0, 16, 256, 4096 };
	struct heap_trace *trace = heap_trace_new(sites[seed % 4], seed % 3 == 0, seed);
	uint64_t state = seed + 1, done = 0;
	const char *wrong = trace ? NULL : "out of memory";

	while (!wrong && done < limit) {
		size_t n = frame_size(&state);

		heap_trace_fill(trace, events, n);
		wrong = fused_check(checker, events, n);
		done += n;
	}
	heap_trace_free(trace);
	return wrong;
}

int main(int argc, char **argv)
{
	uint64_t rounds = getenv("MT_LONG") ? 100 : 2;
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	struct fused_checker *checker = fused_checker_new();
	const struct mt_frame_fused_stats *stats;
	const char *wrong = NULL;

	if (!checker)
		return 1;
#ifdef MT_NO_CPU_DISPATCH
	if (fused_checker_chooses(checker)) {
		printf("Bail out! this should be the code for all processors alone\n");
		return 1;
	}
#endif
	printf("1..1\n");
	/* A million events a round: three quarters hostile, one quarter of a heap. */
	for (uint64_t seed = first; !wrong && seed < first + rounds; seed++) {
		wrong = hostile(checker, seed, 750000);
		if (!wrong)
			wrong = heap(checker, seed, 250000);
		if (wrong)
			printf("# seed %" PRIu64 ": %s\n", seed, wrong);
	}
	stats = fused_checker_stats(checker);
	printf("# %" PRIu64 " frames, %" PRIu64 " of them handed on; %" PRIu64
	       " events byte by byte\n",
	       stats->frames, stats->frames_handed_on, stats->events_slow);
	printf("%sok 1 - fused: %" PRIu64 " million random events come back\n", wrong ? "not " : "",
	       rounds);
	fused_checker_free(checker);
	return wrong != NULL;
}
