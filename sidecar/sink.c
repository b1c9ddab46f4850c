/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"

/* How long the kernel's rings may go unread while the encoder is behind. */
#define TAKE_MS 2

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

void mt_sink_flush(struct mt_sink *sink)
{
	struct mt_batch *batch = sink->batch;

	if (batch->count == 0)
		return;
	sink->frames++;
	sink->submitted_events += batch->count;
	sink->batch_began_ns = 0;
	mt_encoder_submit(sink->encoder, batch);
	/* Only the first take may fail for good, and that one succeeded. */
	do {
		if (sink->meanwhile)
			sink->meanwhile(sink->meanwhile_context);
		sink->batch = mt_encoder_take_within(sink->encoder, TAKE_MS);
	} while (!sink->batch);
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
