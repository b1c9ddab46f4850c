/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/pulse.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "sidecar/child.h"

#define MS_NS	       UINT64_C(1000000)
#define EVERY_MS_MOST  1000u
#define EVERY_MS_LEAST 50u
/* The file tells the age of the sidecar's last sign to within this share of --max-wait. */
#define SHARE 4u

static bool write_file(const struct mt_pulse_writer *writer, size_t bytes)
{
	const struct mt_pulse pulse = writer->pulse;

	return pwrite(writer->fd, &pulse, bytes, 0) == (ssize_t)bytes;
}

void mt_pulse_open(struct mt_pulse_writer *writer, const char *directory, uint64_t max_wait_ms)
{
	uint64_t every_ms = max_wait_ms / SHARE;
	char path[PATH_MAX];

	*writer = (struct mt_pulse_writer){
		.fd = -1,
		.pulse = { .magic = MT_HELLO_MAGIC,
			   .version = MT_CONTROL_VERSION,
			   .max_wait_ms =
				   max_wait_ms < UINT32_MAX ? (uint32_t)max_wait_ms : UINT32_MAX },
	};
	if (every_ms > EVERY_MS_MOST)
		every_ms = EVERY_MS_MOST;
	if (every_ms < EVERY_MS_LEAST)
		every_ms = EVERY_MS_LEAST;
	writer->every_ns = every_ms * MS_NS;
	writer->in_vain_ns = max_wait_ms * MS_NS;
	if (max_wait_ms < MT_PULSE_LEAST_MS)
		writer->in_vain_ns = MT_PULSE_LEAST_MS * MS_NS;
	if (max_wait_ms > MT_HELLO_WAIT_MS)
		writer->in_vain_ns = MT_HELLO_WAIT_MS * MS_NS;
	writer->pulse.beat_ns = mt_clock_monotonic_ns();
	if (!directory[0])
		return;
	snprintf(path, sizeof(path), "%s/" MT_PULSE_FILE, directory);
	writer->fd = mt_move_fd_high(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	if (writer->fd < 0)
		return;
	if (!write_file(writer, sizeof(writer->pulse)))
		mt_pulse_close(writer);
}

int mt_pulse_every_ms(const struct mt_pulse_writer *writer)
{
	return (int)(writer->every_ns / MS_NS);
}

void mt_pulse_beat(struct mt_pulse_writer *writer)
{
	uint64_t now_ns = mt_clock_monotonic_ns();

	if (now_ns - writer->pulse.beat_ns < writer->every_ns)
		return;
	if (now_ns - writer->pulse.beat_ns >= writer->in_vain_ns) {
		writer->stood_from_ns = writer->pulse.beat_ns;
		writer->stood_to_ns = now_ns;
	}
	writer->pulse.beat_ns = now_ns;
	if (writer->fd >= 0) /* a sign that is lost is followed by others */
		(void)write_file(writer, offsetof(struct mt_pulse, given_up_ns));
}

bool mt_pulse_stood_still(const struct mt_pulse_writer *writer, uint64_t time_ns)
{
	return time_ns >= writer->stood_from_ns && time_ns < writer->stood_to_ns;
}

void mt_pulse_close(struct mt_pulse_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	writer->fd = -1;
}
