/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/format.h"

/* How long an empty batch is waited for before `meanwhile` has its turn. */
#define TAKE_MS 1

int mt_sink_init(struct mt_sink *sink, struct mt_encoder *encoder, enum mt_counter counter)
{
	int ret;

	memset(sink, 0, sizeof(*sink));
	ret = mt_clock_init(&sink->clock, counter);
	if (ret < 0)
		return ret;
	sink->anomalies = calloc(MT_ANOMALIES_LISTED, sizeof(*sink->anomalies));
	if (!sink->anomalies)
		return -ENOMEM;
	sink->encoder = encoder;
	sink->look_at = MT_PACE_EVENTS_MAX;
	sink->batch = mt_encoder_take(encoder);
	if (!sink->batch) {
		free(sink->anomalies);
		sink->anomalies = NULL;
		return -ENOMEM;
	}
	return 0;
}

void mt_sink_fini(struct mt_sink *sink)
{
	/* A batch that was taken goes back by being submitted. */
	if (sink->batch)
		mt_encoder_submit(sink->encoder, sink->batch);
	free(sink->anomalies);
	memset(sink, 0, sizeof(*sink));
}

static bool is_lately(const struct mt_sink *sink, uint64_t time_ns)
{
	return time_ns + MT_SINK_LATELY_NS >= sink->last_ns;
}

/* The block that an event frees; 0: none. */
static uint64_t freed_by(const struct mt_event *event)
{
	if (event->type == MT_EVENT_FREE)
		return event->addr;
	return event->type == MT_EVENT_REALLOC && event->flags & MT_EVENT_HAS_OLD ? event->aux : 0;
}

static void keep_tail(struct mt_sink *sink)
{
	const struct mt_event *events = sink->batch->events;

	sink->tail_count = 0;
	for (uint32_t i = sink->batch->count; i-- > 0 && sink->tail_count < MT_SINK_TAIL;) {
		uint64_t addr = freed_by(&events[i]);

		if (!is_lately(sink, events[i].timestamp_ns))
			return;
		if (addr != 0)
			sink->tail[sink->tail_count++] =
				(struct mt_sink_freed){ addr, events[i].timestamp_ns,
							events[i].pid };
	}
}

bool mt_sink_freed_lately(const struct mt_sink *sink, int32_t pid, uint64_t addr)
{
	const struct mt_event *events = sink->batch->events;
	uint32_t i;

	for (i = sink->batch->count; i-- > 0;) {
		if (!is_lately(sink, events[i].timestamp_ns))
			return false;
		if (freed_by(&events[i]) == addr && events[i].pid == pid)
			return true;
	}
	for (i = 0; i < sink->tail_count && is_lately(sink, sink->tail[i].time_ns); i++)
		if (sink->tail[i].addr == addr && sink->tail[i].pid == pid)
			return true;
	return false;
}

static void call_meanwhile(struct mt_sink *sink, uint64_t now_ns, bool moves)
{
	if (!sink->meanwhile || now_ns - sink->meanwhile_ns < MT_SINK_MEANWHILE_NS)
		return;
	sink->meanwhile_ns = now_ns;
	sink->meanwhile(sink->meanwhile_context, moves);
}

/* Waits a step of the encoder's pace. */
static void keep_pace(struct mt_sink *sink)
{
	uint64_t now_ns = mt_clock_monotonic_ns(), until_ns;
	struct mt_encoder_load load;
	uint32_t events;

	mt_encoder_load(sink->encoder, &load);
	until_ns = now_ns + mt_pace_next(&sink->pace, &load, sink->batch->count, now_ns, &events);
	for (;;) {
		struct timespec nap = { 0 };
		uint64_t left_ns;

		call_meanwhile(sink, now_ns, true);
		if (now_ns >= until_ns)
			break;
		left_ns = until_ns - now_ns;
		nap.tv_nsec =
			(long)(left_ns < MT_SINK_MEANWHILE_NS ? left_ns : MT_SINK_MEANWHILE_NS);
		nanosleep(&nap, NULL);
		now_ns = mt_clock_monotonic_ns();
	}
	sink->look_at = sink->batch->count + events;
	if (sink->look_at > MT_BATCH_EVENTS)
		sink->look_at = MT_BATCH_EVENTS;
}

static void submit(struct mt_sink *sink)
{
	struct mt_batch *batch = sink->batch;

	keep_tail(sink);
	sink->frames++;
	sink->submitted_events += batch->count;
	sink->batch_began_ns = 0;
	mt_encoder_submit(sink->encoder, batch);
	/* Only the first take may fail for good, and that one succeeded. */
	for (;;) {
		sink->batch = mt_encoder_take_within(sink->encoder, TAKE_MS);
		if (sink->batch)
			return;
		call_meanwhile(sink, mt_clock_monotonic_ns(), mt_encoder_moves(sink->encoder));
	}
}

void mt_sink_flush(struct mt_sink *sink)
{
	if (sink->batch->count == 0)
		return;
	submit(sink);
	sink->look_at = MT_PACE_EVENTS_MIN;
}

void mt_sink_look(struct mt_sink *sink)
{
	if (sink->batch->count == MT_BATCH_EVENTS)
		submit(sink);
	keep_pace(sink);
}

void mt_sink_flush_old(struct mt_sink *sink, uint64_t now_ns, uint64_t age_ns)
{
	if (sink->batch->count == 0)
		return;
	if (sink->batch_began_ns == 0)
		sink->batch_began_ns = now_ns;
	else if (now_ns - sink->batch_began_ns >= age_ns)
		mt_sink_flush(sink);
}

void mt_sink_flag(struct mt_sink *sink, enum mt_anomaly_reason reason)
{
	if (reason == MT_ANOMALY_UNKNOWN_FREE)
		sink->stats.unknown_frees++;
	else
		sink->stats.live_allocs++;
	if (sink->anomaly_count == MT_ANOMALIES_LISTED)
		return;
	sink->anomalies[sink->anomaly_count++] = (struct mt_order_anomaly){
		.frame = sink->frames,
		.index = sink->batch->count - 1,
		.reason = reason,
	};
}
