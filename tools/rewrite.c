/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "common/format.h"
#include "common/frame_enc.h"
#include "common/frame_fused.h"
#include "tools/command.h"

#define COPY_BYTES (1u << 20)

static int failed(const struct mt_rewrite *rw, const char *name, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", rw->input->command, name, why);
	return MT_EXIT_FAILED;
}

/* Whether the name is another one of the input's file, which would be lost. */
static bool is_input(const struct mt_input *input, const char *name)
{
	struct stat in, out;

	return !stat(name, &out) &&
	       !stat(strcmp(input->name, "standard input") ? input->name : "/dev/stdin", &in) &&
	       in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

int mt_rewrite_open(struct mt_rewrite *rw, struct mt_input *input, const char *name, bool force)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), ret;

	rw->input = input;
	rw->name = name;
	rw->fd = -1;
	if (is_input(input, name))
		return failed(rw, name, "is the file that is read; name another one");
	rw->fd = open(name, flags, 0666);
	if (rw->fd < 0 && errno == EEXIST)
		return failed(rw, name, "exists; use --force to replace it");
	if (rw->fd < 0)
		return failed(rw, name, strerror(errno));
	rw->made = true;
	ret = mt_artifact_writer_init(&rw->writer, rw->fd, 0);
	if (!ret && rw->codec == MT_REWRITE_FUSED)
		ret = mt_frame_fused_new(rw->level, &rw->fused);
	/* The serializer, which tells whether content is as we would make it. */
	if (!ret)
		ret = mt_frame_enc_new(rw->level, &rw->enc);
	if (ret) {
		(void)failed(rw, name, strerror(-ret));
		(void)mt_rewrite_close(rw, false);
		return MT_EXIT_FAILED;
	}
	return 0;
}

int mt_rewrite_close(struct mt_rewrite *rw, bool keep)
{
	struct stat st;
	int ret = 0;

	if (rw->error)
		ret = failed(rw, rw->name, strerror(-rw->error));
	/* Only what a name can be taken from: never a device. */
	if (rw->made && (ret || !keep) && !fstat(rw->fd, &st) && S_ISREG(st.st_mode))
		(void)unlink(rw->name); /* half a file would be taken for a whole one */
	if (rw->fd >= 0 && close(rw->fd) && !ret && keep)
		ret = failed(rw, rw->name, strerror(errno));
	rw->fd = -1;
	mt_frame_fused_free(rw->fused);
	mt_frame_enc_free(rw->enc);
	rw->fused = NULL;
	rw->enc = NULL;
	return ret;
}

static int append(struct mt_rewrite *rw, const void *bytes, size_t len)
{
	if (!rw->error)
		rw->error = mt_artifact_writer_append(&rw->writer, bytes, len);
	return rw->error;
}

int mt_rewrite_meta(struct mt_rewrite *rw, const uint8_t *frame, size_t len)
{
	return append(rw, frame, len);
}

int mt_rewrite_copy(struct mt_rewrite *rw, uint64_t start, uint64_t end)
{
	while (start < end && !rw->error) {
		size_t want = end - start < COPY_BYTES ? (size_t)(end - start) : COPY_BYTES, got;
		const uint8_t *bytes;

		rw->error = mt_artifact_reader_bytes(rw->input->reader, start, want, &bytes, &got);
		if (!rw->error && got < want)
			rw->error = -EIO; /* the input has lost its end */
		if (!rw->error)
			(void)append(rw, bytes, got);
		start += got;
	}
	return rw->error;
}

int mt_rewrite_hint(struct mt_rewrite *rw, const struct mt_frame_hint *hint)
{
	uint8_t bytes[MT_FRAME_HINT_BYTES];

	mt_frame_hint_write(hint, bytes);
	return append(rw, bytes, sizeof(bytes));
}

int mt_rewrite_fill(struct mt_rewrite *rw, uint64_t frames)
{
	const uint8_t *frame;
	size_t len;

	while (!rw->error && rw->frames < frames) {
		rw->error = mt_frame_enc_frame(rw->enc, NULL, 0, &frame, &len);
		if (!rw->error)
			(void)append(rw, frame, len);
		rw->frames++;
	}
	return rw->error;
}

/* Content that our serializer would make otherwise: another order of keys, keys of others. */
static int batch_as_bytes(struct mt_rewrite *rw, const struct mt_artifact_batch *batch)
{
	size_t room = ZSTD_compressBound(batch->content_len), len;
	void *frame = malloc(room);

	if (!frame)
		return rw->error = -ENOMEM;
	rw->copied_as_bytes++;
	len = ZSTD_compress(frame, room, batch->content, batch->content_len, rw->level);
	if (ZSTD_isError(len))
		rw->error = -ENOMEM;
	else
		(void)append(rw, frame, len);
	free(frame);
	return rw->error;
}

int mt_rewrite_batch(struct mt_rewrite *rw, const struct mt_artifact_batch *batch)
{
	struct mt_frame_hint hint = { 0 };
	const uint8_t *content, *frame;
	size_t content_len, len;
	int ret;

	if (rw->error)
		return rw->error;
	rw->frames++;
	rw->events += batch->n;
	ret = mt_frame_enc_serialize(rw->enc, batch->events, batch->n, &content, &content_len);
	if (ret || content_len != batch->content_len ||
	    memcmp(content, batch->content, content_len))
		return batch_as_bytes(rw, batch);
	if (rw->fused)
		ret = mt_frame_fused_frame(rw->fused, batch->events, batch->n, &frame, &len);
	else
		ret = mt_frame_enc_frame(rw->enc, batch->events, batch->n, &frame, &len);
	if (ret)
		return rw->error = ret;
	hint.frame_len = len;
	mt_frame_hint_add(&hint, batch->events, batch->n);
	(void)mt_rewrite_hint(rw, &hint);
	return append(rw, frame, len);
}
