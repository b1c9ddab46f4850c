/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/artifact_source.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/format.h"

enum {
	WINDOW = 1 << 20,
	FRAME_HEADER_MAX = 18, /* of zstd: magic, descriptor, window, dictionary, content size */
	BLOCK_HEADER = 3,
};

static int open_unnamed(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd, n;

	if (!dir || !*dir)
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system knows files without a name. */
	n = snprintf(path, sizeof(path), "%s/memtrack-XXXXXX", dir);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* A name that is left behind is ugly but does no harm. */
	(void)unlink(path);
	return fd;
}

static int copy_all(int from, int to, uint8_t *chunk)
{
	for (;;) {
		ssize_t got = read(from, chunk, WINDOW);
		ssize_t done = 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return 0;
		while (done < got) {
			ssize_t n = write(to, chunk + done, (size_t)(got - done));

			if (n < 0 && errno != EINTR)
				return -errno;
			if (n > 0)
				done += n;
		}
	}
}

/* Replaces a descriptor that has no positions by one of a file with the same bytes. */
static int spool(struct mt_artifact_source *src)
{
	int fd, ret;

	ret = mt_buf_reserve(&src->window, WINDOW);
	if (ret)
		return ret;
	fd = open_unnamed();
	if (fd < 0)
		return fd;
	ret = copy_all(src->fd, fd, src->window.data);
	(void)close(src->fd); /* it was only read */
	src->fd = fd;
	return ret;
}

int mt_artifact_source_open(struct mt_artifact_source *src, int fd)
{
	struct stat st;
	int ret = 0;

	*src = (struct mt_artifact_source){ .fd = fd, .read_ahead = WINDOW };
	if (fstat(fd, &st))
		ret = -errno;
	else if (S_ISDIR(st.st_mode))
		ret = -EISDIR;
	if (!ret && !S_ISREG(st.st_mode)) {
		ret = spool(src);
		if (!ret && fstat(src->fd, &st))
			ret = -errno;
	}
	if (ret) {
		mt_artifact_source_close(src);
		return ret;
	}
	src->size = (uint64_t)st.st_size;
	return 0;
}

void mt_artifact_source_close(struct mt_artifact_source *src)
{
	if (src->fd >= 0)
		(void)close(src->fd); /* it was only read */
	src->fd = -1;
	mt_buf_fini(&src->window);
}

static int fill_window(struct mt_artifact_source *src, uint64_t at, size_t len)
{
	size_t want = len > src->read_ahead ? len : src->read_ahead;
	int ret;

	if (want > src->size - at)
		want = (size_t)(src->size - at);
	src->window.len = 0;
	src->window_at = at;
	ret = mt_buf_reserve(&src->window, want);
	while (!ret && src->window.len < want) {
		ssize_t n = pread(src->fd, src->window.data + src->window.len,
				  want - src->window.len, (off_t)(at + src->window.len));

		if (n > 0)
			src->window.len += (size_t)n;
		else if (n == 0)
			want = (size_t)((src->size = at + src->window.len) - at);
		else if (errno != EINTR)
			ret = -errno;
	}
	return ret;
}

int mt_artifact_source_peek(struct mt_artifact_source *src, uint64_t at, size_t len,
			    const uint8_t **ret_bytes, size_t *ret_len)
{
	int ret;

	if (at >= src->size)
		len = 0;
	else if (len > src->size - at)
		len = (size_t)(src->size - at);
	if (len && (at < src->window_at || at - src->window_at > src->window.len ||
		    src->window.len - (size_t)(at - src->window_at) < len)) {
		ret = fill_window(src, at, len);
		if (ret)
			return ret;
		if (len > src->window.len)
			len = src->window.len;
	}
	*ret_bytes = len ? src->window.data + (at - src->window_at) : NULL;
	*ret_len = len;
	return 0;
}

static uint64_t load_le(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

static bool magic_known(uint32_t magic)
{
	return magic == MT_ZSTD_MAGIC || (magic & MT_SKIPPABLE_MASK) == MT_SKIPPABLE_MAGIC;
}

/* Whether the last bytes of a file, fewer than four, can be the head of a magic. */
static bool magic_begins(const uint8_t *p, size_t len)
{
	const uint32_t zstd = htole32(MT_ZSTD_MAGIC), skip = htole32(MT_SKIPPABLE_MAGIC);

	return !memcmp(p, &zstd, len) || ((p[0] & 0xf0) == (MT_SKIPPABLE_MAGIC & 0xf0) &&
					  !memcmp(p + 1, (const uint8_t *)&skip + 1, len - 1));
}

/*
 * Reads a zstd frame's header. 1 with what follows it in *ret_at; 0 when the
 * file ends inside it; -EBADMSG.
 */
static int frame_header(const uint8_t *p, size_t len, struct mt_frame_extent *e, uint64_t *ret_at,
			const char **ret_why)
{
	static const uint8_t dictionary_bytes[4] = { 0, 1, 2, 4 };
	static const uint8_t size_bytes[4] = { 0, 2, 4, 8 };
	unsigned int descriptor, size, head;
	bool single;

	if (len < 5)
		return 0;
	descriptor = p[4];
	single = descriptor & 0x20;
	if (descriptor & 0x08) {
		*ret_why = "a reserved bit is set in the frame's header";
		return -EBADMSG;
	}
	if (descriptor & 3) {
		*ret_why = "the frame needs a dictionary";
		return -EBADMSG;
	}
	size = size_bytes[descriptor >> 6];
	if (single && !size)
		size = 1;
	head = (single ? 5u : 6u) + dictionary_bytes[descriptor & 3];
	if (len < head + size)
		return 0;
	if (size)
		e->content_size = load_le(p + head, size) + (size == 2 ? 256 : 0);
	*ret_at = e->start + head + size;
	return 1;
}

static int data_frame(struct mt_artifact_source *src, struct mt_frame_extent *e,
		      const char **ret_why)
{
	const uint8_t *p;
	unsigned int checksum_bytes;
	bool last = false;
	uint64_t at = 0;
	size_t len;
	int ret;

	ret = mt_artifact_source_peek(src, e->start, FRAME_HEADER_MAX, &p, &len);
	if (ret)
		return ret;
	e->content_size = UINT64_MAX;
	ret = frame_header(p, len, e, &at, ret_why);
	e->cut = ret == 0;
	if (ret <= 0)
		return ret;
	checksum_bytes = p[4] & 4;
	while (!last) {
		uint32_t block, size;

		ret = mt_artifact_source_peek(src, at, BLOCK_HEADER, &p, &len);
		if (ret)
			return ret;
		if (len < BLOCK_HEADER)
			break;
		block = (uint32_t)load_le(p, BLOCK_HEADER);
		last = block & 1;
		size = block >> 3;
		if ((block >> 1 & 3) == 3 || size > MT_ZSTD_BLOCK_MAX) {
			*ret_why = "the header of a zstd block is damaged";
			return -EBADMSG;
		}
		/* A run of one byte stores that byte; its size is what it expands to. */
		if ((block >> 1 & 3) == 1)
			size = 1;
		at += BLOCK_HEADER + size;
		if (at > src->size)
			break;
		e->whole_blocks++;
		if (last)
			at += checksum_bytes;
	}
	e->cut = !last || at > src->size;
	e->end = e->cut ? src->size : at;
	return 0;
}

int mt_artifact_source_frame(struct mt_artifact_source *src, uint64_t at,
			     struct mt_frame_extent *ret_extent, const char **ret_why)
{
	struct mt_frame_extent e = { .start = at, .end = src->size, .content_size = UINT64_MAX };
	const uint8_t *p;
	size_t len;
	int ret;

	*ret_extent = e;
	ret = mt_artifact_source_peek(src, at, MT_SKIPPABLE_HEAD, &p, &len);
	if (ret)
		return ret;
	if (!len)
		return 0;
	*ret_why = "no frame begins here";
	if (len < 4) {
		if (!magic_begins(p, len))
			return -EBADMSG;
		e.magic = MT_ZSTD_MAGIC;
		e.cut = true;
	} else {
		e.magic = (uint32_t)load_le(p, 4);
		if (!magic_known(e.magic))
			return -EBADMSG;
		if (mt_frame_is_skippable(&e)) {
			e.cut = len < MT_SKIPPABLE_HEAD ||
				load_le(p + 4, 4) > src->size - at - MT_SKIPPABLE_HEAD;
			if (!e.cut)
				e.end = at + MT_SKIPPABLE_HEAD + load_le(p + 4, 4);
		} else {
			ret = data_frame(src, &e, ret_why);
			if (ret) {
				ret_extent->magic = e.magic;
				return ret;
			}
		}
	}
	*ret_extent = e;
	return 1;
}

/* A magic at `at`: is it a frame's? Four equal bytes can stand anywhere in compressed data. */
static int is_frame(struct mt_artifact_source *src, uint64_t at)
{
	struct mt_frame_extent e, next;
	const char *why;
	int ret;

	ret = mt_artifact_source_frame(src, at, &e, &why);
	if (ret == 1 && e.cut)
		return !mt_frame_is_skippable(&e) && e.whole_blocks > 0;
	if (ret == 1) {
		ret = mt_artifact_source_frame(src, e.end, &next, &why);
		if (ret >= 0)
			return 1;
	}
	return ret == -EBADMSG ? 0 : ret;
}

int mt_artifact_source_begins(struct mt_artifact_source *src, uint64_t at)
{
	const uint8_t *p;
	size_t len;
	int ret;

	ret = mt_artifact_source_peek(src, at, 4, &p, &len);
	if (ret || !len)
		return ret;
	return len < 4 ? magic_begins(p, len) : magic_known((uint32_t)load_le(p, 4));
}

int mt_artifact_source_is_data(struct mt_artifact_source *src, uint64_t at)
{
	const uint8_t *p;
	size_t len;
	int ret;

	ret = mt_artifact_source_peek(src, at, 4, &p, &len);
	return ret ? ret : len == 4 && (uint32_t)load_le(p, 4) == MT_ZSTD_MAGIC;
}

int mt_artifact_source_find_frame(struct mt_artifact_source *src, uint64_t *ret_at)
{
	uint64_t at = *ret_at + 1;
	const uint8_t *p;
	size_t len;
	int ret;

	for (;; at += len - 3) {
		ret = mt_artifact_source_peek(src, at, WINDOW / 2, &p, &len);
		if (ret)
			return ret;
		if (len < 4)
			return 0;
		for (size_t i = 0; i + 4 <= len; i++) {
			if (!magic_known((uint32_t)load_le(p + i, 4)))
				continue;
			ret = is_frame(src, at + i);
			if (ret == 1)
				*ret_at = at + i;
			if (ret)
				return ret;
			/* That moved the window. */
			ret = mt_artifact_source_peek(src, at, WINDOW / 2, &p, &len);
			if (ret)
				return ret;
		}
	}
}
