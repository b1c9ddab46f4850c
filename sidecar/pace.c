// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/pace.h"

#include "sidecar/batch.h"

/* What is let through at once: a chunk or so at the rates at which a program is held up. */
#define STEP_NS UINT64_C(500000)

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Longer than lately is what has taken longer already. */
static uint64_t batch_takes(const struct mt_encoder_load *load, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns > load->since_ns ? now_ns - load->since_ns : 0;

	waited_ns /= load->workers;
	return load->batch_ns > waited_ns ? load->batch_ns : waited_ns;
}

uint64_t mt_pace_next(struct mt_pace *pace, const struct mt_encoder_load *load, uint32_t filled,
		      uint64_t now_ns, uint32_t *ret_events)
{
	uint64_t room = MT_BATCH_EVENTS - filled, unpaced, empty_ns, events, wait_ns;

	if (load->ahead + 1 < load->in_flight)
		room += (uint64_t)(load->in_flight - 1 - load->ahead) * MT_BATCH_EVENTS;
	unpaced = (uint64_t)(load->in_flight - 1 - load->workers) * MT_BATCH_EVENTS;
	if (room > unpaced) {
		pace->due_ns = now_ns;
		*ret_events = MT_PACE_EVENTS_MAX;
		return 0;
	}
	/* The time in which all of the room would be used at this rate. */
	empty_ns = batch_takes(load, now_ns) * (load->workers + 2) / 2;
	events = clamp(room * STEP_NS / (empty_ns + 1), MT_PACE_EVENTS_MIN, MT_PACE_EVENTS_MAX);
	wait_ns = pace->due_ns > now_ns ? pace->due_ns - now_ns : 0;
	pace->due_ns = now_ns + wait_ns + clamp(events * empty_ns / room, 0, MT_PACE_WAIT_NS);
	*ret_events = (uint32_t)events;
	return wait_ns;
}
