/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/artifact_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/atomic.h"

int mt_artifact_writer_init(struct mt_artifact_writer *w, int fd, uint64_t max_bytes)
{
	struct stat st;
	off_t at = 0;
	int flags;

	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &st))
		return -errno;
	if (S_ISREG(st.st_mode)) {
		/* Under O_APPEND a position given to pwrite() is ignored. */
		if (flags & O_APPEND)
			return -EINVAL;
		at = lseek(fd, 0, SEEK_CUR);
		if (at < 0)
			return -errno;
	}
	*w = (struct mt_artifact_writer){
		.fd = fd,
		.regular = S_ISREG(st.st_mode),
		.start = (uint64_t)at,
		.max_bytes = max_bytes,
	};
	return 0;
}

/* A slow output shows that it moves by each of these. */
#define PORTION_BYTES ((size_t)1 << 16)

/* A descriptor that was handed to us may be non-blocking; then we wait for it. */
static int wait_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (poll(&p, 1, -1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

/* Writes all; *ret_done is how much was written, also when it failed. */
static int write_all(struct mt_artifact_writer *w, const uint8_t *data, size_t len,
		     size_t *ret_done)
{
	size_t done = 0;
	int ret = 0;

	while (done < len && !ret) {
		size_t portion = len - done < PORTION_BYTES ? len - done : PORTION_BYTES;
		ssize_t n = w->regular ? pwrite(w->fd, data + done, portion,
						(off_t)(w->start + w->bytes + done))
				       : write(w->fd, data + done, portion);

		if (n > 0) {
			done += (size_t)n;
			mt_add_relaxed(&w->taken, (uint64_t)n);
		} else if (n == 0) {
			ret = -ENOSPC; /* no error, no progress: as good as full */
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			ret = wait_writable(w->fd);
		} else if (errno != EINTR) {
			ret = -errno;
		}
	}
	*ret_done = done;
	return ret;
}

/* Takes the half frame at the end away, now or before the next one is written. */
static int cut_back(struct mt_artifact_writer *w)
{
	int ret;

	if (!w->regular)
		return -EPIPE;
	do {
		ret = ftruncate(w->fd, (off_t)(w->start + w->bytes));
	} while (ret && errno == EINTR);
	if (ret)
		return -errno;
	w->half = false;
	return 0;
}

void mt_artifact_writer_look(struct mt_artifact_writer *w)
{
	struct stat st;

	if (w->regular && !w->half && fstat(w->fd, &st) == 0 &&
	    (uint64_t)st.st_size != w->start + w->bytes)
		w->disturbed = true;
}

int mt_artifact_writer_append_last(struct mt_artifact_writer *w, const void *frame, size_t len)
{
	size_t done = 0;
	int ret;

	if (w->half) {
		ret = cut_back(w);
		if (ret)
			return ret;
	}
	mt_artifact_writer_look(w);
	ret = write_all(w, frame, len, &done);
	if (ret) {
		w->half = done > 0;
		/* A failure is told, and tried again, by the next call. */
		if (w->half)
			(void)cut_back(w);
		return ret;
	}
	w->bytes += len;
	w->frames++;
	return 0;
}

int mt_artifact_writer_append(struct mt_artifact_writer *w, const void *frame, size_t len)
{
	if (w->max_bytes && (w->bytes > w->max_bytes || len > w->max_bytes - w->bytes))
		return -EFBIG;
	return mt_artifact_writer_append_last(w, frame, len);
}
