/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/timens.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

int64_t mt_timens_ahead_ns(pid_t pid)
{
	char path[48] = "/proc/self/timens_offsets", text[256];
	int64_t seconds, ns;
	const char *line;
	ssize_t len;
	int fd;

	if (pid != 0)
		snprintf(path, sizeof(path), "/proc/%d/timens_offsets", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* an older kernel, or the process is gone */
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	line = strstr(text, "monotonic");
	if (!line || sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) != 2 ||
	    seconds > INT64_MAX / 2000000000 || seconds < INT64_MIN / 2000000000)
		return 0;
	return seconds * 1000000000 + ns;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * What the kernel tells are the offsets for the process's children. Before Linux 6.3 they are not
 * its own until it forks, so the reading that is nearer to now is taken.
 */
uint64_t mt_timens_ours(pid_t pid, uint64_t time_ns)
{
	uint64_t behind = (uint64_t)(mt_timens_ahead_ns(0) - mt_timens_ahead_ns(pid));
	uint64_t now = mt_clock_monotonic_ns();

	if (distance(time_ns + behind, now) < distance(time_ns, now))
		return time_ns + behind;
	return time_ns;
}
