/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where the merge puts events: the batch being filled, its clock, and what is counted on the way.
 *
 * Times in the artifact never fall: an event whose stamp is older than one already written gets the
 * time of that one (and is counted as late).
 *
 * What the merge does when it puts events here may take long, since the encoder is waited for: it
 * is held to the encoder's pace (pace.h), and waits for an empty batch when there is none. All that
 * others wait for meanwhile is done by `meanwhile`, which is called at least each
 * MT_SINK_MEANWHILE_NS as long as events come or are waited with. `moves` says whether the sidecar
 * makes progress: false when an empty batch is waited for and the encoder stands still.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_SINK_H
#define MT_SIDECAR_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/run_meta.h"
#include "sidecar/batch.h"
#include "sidecar/encoder.h"
#include "sidecar/order.h"
#include "sidecar/pace.h"

#define MT_SINK_MEANWHILE_NS UINT64_C(500000)
#define MT_SINK_LATELY_NS    UINT64_C(50000) /* how far back mt_sink_freed_lately() looks */
#define MT_SINK_TAIL	     1024u	     /* frees kept of the batch before */

/* A block that was freed: by Free, or as the old one of a Realloc. */
struct mt_sink_freed {
	uint64_t addr, time_ns;
	int32_t pid;
};

struct mt_sink {
	struct mt_encoder *encoder;
	struct mt_batch *batch;
	uint32_t look_at; /* events in the batch at which mt_sink_look() is due */
	struct mt_pace pace;
	struct mt_clock clock;
	uint64_t last_stamp, last_ns;
	uint64_t frames; /* batches with events that were submitted */
	uint64_t submitted_events;
	uint64_t batch_began_ns; /* 0: the batch is empty */
	struct mt_order_stats stats;
	void (*meanwhile)(void *context, bool moves);
	void *meanwhile_context;
	uint64_t meanwhile_ns; /* when it was called */
	struct mt_order_anomaly *anomalies;
	size_t anomaly_count;
	struct mt_sink_freed tail[MT_SINK_TAIL]; /* the newest first */
	uint32_t tail_count;
};

/* Returns 0 or a negative errno. */
int mt_sink_init(struct mt_sink *sink, struct mt_encoder *encoder, enum mt_counter counter);
void mt_sink_fini(struct mt_sink *sink);

/* The batch is full, or it is time to look how far the encoder is. Returns with room for an event.
 */
void mt_sink_look(struct mt_sink *sink);

/* Submits the batch, if it holds any event, and takes an empty one. */
void mt_sink_flush(struct mt_sink *sink);

/* Flushes a batch that is older than age_ns. */
void mt_sink_flush_old(struct mt_sink *sink, uint64_t now_ns, uint64_t age_ns);

/* Lists the event written last as an anomaly. */
void mt_sink_flag(struct mt_sink *sink, enum mt_anomaly_reason reason);

/* Was a free of this block written in the last MT_SINK_LATELY_NS? For rare cases: it searches. */
bool mt_sink_freed_lately(const struct mt_sink *sink, int32_t pid, uint64_t addr);

static inline uint64_t mt_sink_events(const struct mt_sink *sink)
{
	return sink->submitted_events + sink->batch->count;
}

/* Room for one event, its time filled in; the caller writes the rest. */
static inline struct mt_event *mt_sink_add(struct mt_sink *sink, uint64_t stamp)
{
	struct mt_event *event;

	if (__builtin_expect(sink->batch->count >= sink->look_at, 0))
		mt_sink_look(sink);
	if (__builtin_expect(stamp >= sink->last_stamp, 1)) {
		uint64_t ns = mt_clock_ns(&sink->clock, stamp);

		sink->last_stamp = stamp;
		if (ns > sink->last_ns)
			sink->last_ns = ns;
	} else {
		sink->stats.late++;
	}
	event = &sink->batch->events[sink->batch->count++];
	event->timestamp_ns = sink->last_ns;
	return event;
}

#endif
