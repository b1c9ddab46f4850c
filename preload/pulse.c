/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/pulse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include "common/control.h"
#include "common/raw_syscall.h"
#include "preload/stamp.h"

#define MS_NS	 UINT64_C(1000000)
#define LEAST_NS (MT_PULSE_LEAST_MS * MS_NS)
/* An own look, whatever the file says: all may have been stopped, and go on just now. */
#define LOOK_NS (200 * MS_NS)
/* What seems older tells of clocks that differ (a time namespace). */
#define OLDEST_NS (UINT64_C(3600) * 1000 * MS_NS)

void mt_pulse_begin(struct mt_pulse_wait *wait, const char *directory)
{
	*wait = (struct mt_pulse_wait){ .directory = directory, .began_ns = mt_stamp_clock_ns() };
	wait->unmoved_ns = wait->began_ns;
}

static int open_file(const char *directory)
{
	char path[PATH_MAX];
	size_t len = strlen(directory);

	if (len == 0 || len + sizeof("/" MT_PULSE_FILE) > sizeof(path))
		return -ENOENT;
	memcpy(path, directory, len);
	memcpy(path + len, "/" MT_PULSE_FILE, sizeof("/" MT_PULSE_FILE));
	return (int)mt_syscall4(SYS_openat, AT_FDCWD, (long)path,
				O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
}

static bool read_file(int fd, struct mt_pulse *ret_pulse)
{
	return mt_syscall4(SYS_pread64, fd, (long)ret_pulse, sizeof(*ret_pulse), 0) ==
		       sizeof(*ret_pulse) &&
	       ret_pulse->magic == MT_HELLO_MAGIC && ret_pulse->version == MT_CONTROL_VERSION &&
	       ret_pulse->beat_ns != 0;
}

static uint64_t age_ns(const struct mt_pulse *pulse, uint64_t now_ns)
{
	uint64_t age = now_ns > pulse->beat_ns ? now_ns - pulse->beat_ns : 0;

	return age < OLDEST_NS ? age : 0;
}

static bool is_in_vain(struct mt_pulse_wait *wait, const struct mt_pulse *pulse, uint64_t now_ns)
{
	uint64_t limit_ns = pulse->max_wait_ms * MS_NS;

	if (limit_ns < LEAST_NS)
		limit_ns = LEAST_NS;
	if (wait->beat_ns != pulse->beat_ns) {
		if (wait->beat_ns != 0)
			wait->unmoved_ns = now_ns;
		wait->beat_ns = pulse->beat_ns;
	}
	return now_ns - wait->unmoved_ns >= limit_ns ||
	       (now_ns - wait->began_ns >= LOOK_NS && age_ns(pulse, now_ns) >= limit_ns);
}

/* A program that may write no files is killed when it writes one. */
static bool may_write(void)
{
	struct rlimit limit;

	return mt_syscall4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) == 0 &&
	       limit.rlim_cur >= sizeof(struct mt_pulse);
}

/* Returns whether to give up; tells the others if this image is the first. */
static bool look(struct mt_pulse_wait *wait, int fd, uint64_t now_ns)
{
	struct mt_pulse pulse;

	if (!read_file(fd, &pulse))
		return false;
	if (pulse.given_up_ns == pulse.beat_ns)
		return true;
	if (!is_in_vain(wait, &pulse, now_ns))
		return false;
	pulse.given_up_ns = pulse.beat_ns;
	/* If it fails the others find out for themselves. */
	if (may_write())
		(void)mt_syscall4(SYS_pwrite64, fd, (long)&pulse.given_up_ns,
				  sizeof(pulse.given_up_ns),
				  offsetof(struct mt_pulse, given_up_ns));
	return true;
}

bool mt_pulse_go_on(struct mt_pulse_wait *wait)
{
	uint64_t now_ns = mt_stamp_clock_ns();
	bool gives_up;
	int fd;

	if (now_ns - wait->began_ns >= MT_HELLO_WAIT_MS * MS_NS)
		return false;
	fd = open_file(wait->directory);
	if (fd < 0)
		return true;
	gives_up = look(wait, fd, now_ns);
	(void)mt_syscall1(SYS_close, fd); /* nothing can be done about a failure */
	return !gives_up;
}
