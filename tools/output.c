/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"

int mt_output_failed(int error)
{
	if (error != -EPIPE)
		fprintf(stderr, "memtrack: cannot write standard output: %s\n", strerror(-error));
	return MT_EXIT_FAILED;
}

int mt_output_end(FILE *out)
{
	errno = 0;
	/* An earlier error may have left no errno; the disk being full is by far its likeliest. */
	if (fflush(out) || ferror(out))
		return mt_output_failed(errno ? -errno : -EIO);
	return MT_EXIT_DONE;
}

int mt_output_write(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
