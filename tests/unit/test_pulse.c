/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sidecar's own memory of when it stood still. */
#include <criterion/criterion.h>

#include "common/clock.h"
#include "sidecar/pulse.h"

#define SECOND_NS UINT64_C(1000000000)

/* A writer without a file, whose last sign of life is so old. */
static struct mt_pulse_writer stopped_for(uint64_t max_wait_ms, uint64_t gap_ns)
{
	struct mt_pulse_writer writer;

	mt_pulse_open(&writer, "", max_wait_ms);
	writer.pulse.beat_ns = mt_clock_monotonic_ns() - gap_ns;
	mt_pulse_beat(&writer);
	return writer;
}

Test(pulse, a_stop_longer_than_the_wait_is_remembered)
{
	struct mt_pulse_writer writer = stopped_for(2000, 3 * SECOND_NS);
	uint64_t now_ns = mt_clock_monotonic_ns();

	cr_assert(mt_pulse_stood_still(&writer, now_ns - SECOND_NS));
	cr_assert_not(mt_pulse_stood_still(&writer, now_ns - 4 * SECOND_NS));
	cr_assert_not(mt_pulse_stood_still(&writer, now_ns + SECOND_NS));
	/* Signs that come in time do not make it forgotten: hellos are still to be read. */
	writer.pulse.beat_ns = now_ns - SECOND_NS;
	mt_pulse_beat(&writer);
	cr_assert(mt_pulse_stood_still(&writer, now_ns - 2 * SECOND_NS));
	mt_pulse_close(&writer);
}

Test(pulse, a_shorter_stop_is_none)
{
	struct mt_pulse_writer writer = stopped_for(10000, 3 * SECOND_NS);

	cr_assert_not(mt_pulse_stood_still(&writer, mt_clock_monotonic_ns() - SECOND_NS));
	mt_pulse_close(&writer);
	/* However short --max-wait is, images do not give up at once. */
	writer = stopped_for(1, SECOND_NS / 4);
	cr_assert_not(mt_pulse_stood_still(&writer, mt_clock_monotonic_ns() - SECOND_NS / 8));
	mt_pulse_close(&writer);
}

/* However long it is, no image waits longer than that for its welcome. */
Test(pulse, a_stop_longer_than_any_image_waits)
{
	struct mt_pulse_writer writer = stopped_for(60000, 11 * SECOND_NS);

	cr_assert(mt_pulse_stood_still(&writer, mt_clock_monotonic_ns() - SECOND_NS));
	mt_pulse_close(&writer);
}
