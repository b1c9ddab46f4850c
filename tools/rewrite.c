/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/rewrite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "common/crc32c.h"
#include "common/format.h"
#include "common/frame_enc.h"
#include "common/frame_fused.h"
#include "tools/command.h"

#define COPY_BYTES (1u << 20)

/*
 * Frames that are joined stay as small as those of our writers. What their events point to fits
 * into one batch of the decoder.
 */
#define JOINED_CONTENT (8u << 20)
#define JOINED_MEMORY  (8u << 20)

static int failed(const struct mt_rewrite *rw, const char *name, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", rw->input->command, name, why);
	return MT_EXIT_FAILED;
}

/* Whether the name is another one of the input's file, which would be lost. */
static bool is_input(const struct mt_input *input, const char *name)
{
	struct stat in, out;

	return !stat(strcmp(name, "-") ? name : "/dev/stdout", &out) && S_ISREG(out.st_mode) &&
	       !stat(strcmp(input->name, "standard input") ? input->name : "/dev/stdin", &in) &&
	       in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

int mt_rewrite_open(struct mt_rewrite *rw, struct mt_input *input, const char *name, bool force)
{
	const char *why;
	int ret;

	rw->input = input;
	rw->name = strcmp(name, "-") ? name : "standard output";
	rw->file.fd = -1;
	if (is_input(input, name))
		return failed(rw, rw->name, "is the file that is read; name another one");
	ret = mt_new_file_open(&rw->file, name, force, &why);
	if (ret)
		return failed(rw, rw->name, why ? why : strerror(-ret));
	ret = mt_artifact_writer_init(&rw->writer, rw->file.fd, 0);
	if (!ret && rw->codec == MT_REWRITE_FUSED)
		ret = mt_frame_fused_new(rw->level, &rw->fused);
	/* The serializer, which tells whether content is as we would make it. */
	if (!ret)
		ret = mt_frame_enc_new(rw->level, &rw->enc);
	if (ret) {
		(void)failed(rw, rw->name, strerror(-ret));
		(void)mt_rewrite_close(rw, false);
		return MT_EXIT_FAILED;
	}
	return 0;
}

int mt_rewrite_close(struct mt_rewrite *rw, bool keep)
{
	const char *why;
	int ret = 0;

	if (rw->error)
		ret = failed(rw, rw->name, strerror(-rw->error));
	if (keep && !ret) {
		int err = mt_new_file_keep(&rw->file, &why);

		if (err)
			ret = failed(rw, rw->name, why ? why : strerror(-err));
	} else {
		mt_new_file_drop(&rw->file);
	}
	mt_frame_fused_free(rw->fused);
	mt_frame_enc_free(rw->enc);
	mt_frame_dec_free(rw->dec);
	mt_buf_fini(&rw->pending);
	rw->dec = NULL;
	rw->fused = NULL;
	rw->enc = NULL;
	return ret;
}

FILE *mt_rewrite_report(const struct mt_rewrite *rw)
{
	return rw->file.is_stdout ? stderr : stdout;
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

/* The next piece of the input, which ends at `end`. 0: it cannot be had, for rw->error. */
static size_t get_piece(struct mt_rewrite *rw, uint64_t start, uint64_t end,
			const uint8_t **ret_bytes)
{
	size_t want = end - start < COPY_BYTES ? (size_t)(end - start) : COPY_BYTES, got;

	rw->error = mt_artifact_reader_bytes(rw->input->reader, start, want, ret_bytes, &got);
	if (!rw->error && got < want)
		rw->error = -EIO; /* the input has lost its end */
	return rw->error ? 0 : got;
}

int mt_rewrite_copy(struct mt_rewrite *rw, uint64_t start, uint64_t end)
{
	const uint8_t *bytes;
	size_t len;

	for (; start < end && !rw->error; start += len) {
		len = get_piece(rw, start, end, &bytes);
		if (len)
			(void)append(rw, bytes, len);
	}
	return rw->error;
}

static int put_hint(struct mt_rewrite *rw, const struct mt_frame_hint *hint)
{
	uint8_t bytes[MT_CHECKED_HINT_BYTES];

	mt_frame_hint_write_checked(hint, bytes);
	return append(rw, bytes, sizeof(bytes));
}

int mt_rewrite_hint_copied(struct mt_rewrite *rw, const struct mt_frame_hint *hint, uint64_t start)
{
	struct mt_frame_hint checked = *hint;
	uint64_t end = start + hint->frame_len;
	const uint8_t *bytes;
	size_t len;

	checked.crc = 0;
	for (; start < end && !rw->error; start += len) {
		len = get_piece(rw, start, end, &bytes);
		if (len)
			checked.crc = mt_crc32c(checked.crc, bytes, len);
	}
	return rw->error ? rw->error : put_hint(rw, &checked);
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
	rw->frames++;
	rw->copied_as_bytes++;
	len = ZSTD_compress(frame, room, batch->content, batch->content_len, rw->level);
	if (ZSTD_isError(len))
		rw->error = -ENOMEM;
	else
		(void)append(rw, frame, len);
	free(frame);
	return rw->error;
}

/* Whether our serializer makes this content of its events. */
static bool is_as_ours(struct mt_rewrite *rw, const struct mt_artifact_batch *batch)
{
	const uint8_t *content;
	size_t len;

	return !mt_frame_enc_serialize(rw->enc, batch->events, batch->n, &content, &len) &&
	       len == batch->content_len && !memcmp(content, batch->content, len);
}

static int write_frame(struct mt_rewrite *rw, const struct mt_event *events, size_t n)
{
	struct mt_frame_hint hint = { 0 };
	const uint8_t *frame;
	size_t len;
	int ret;

	if (rw->fused)
		ret = mt_frame_fused_frame(rw->fused, events, n, &frame, &len);
	else
		ret = mt_frame_enc_frame(rw->enc, events, n, &frame, &len);
	if (ret)
		return rw->error = ret;
	rw->frames++;
	hint.frame_len = len;
	hint.crc = mt_crc32c(0, frame, len);
	mt_frame_hint_add(&hint, events, n);
	(void)put_hint(rw, &hint);
	return append(rw, frame, len);
}

int mt_rewrite_batch(struct mt_rewrite *rw, const struct mt_artifact_batch *batch)
{
	if (rw->error)
		return rw->error;
	rw->events += batch->n;
	return is_as_ours(rw, batch) ? write_frame(rw, batch->events, batch->n)
				     : batch_as_bytes(rw, batch);
}

/* Memory that decoded events point to, at most. */
static size_t memory_of(const struct mt_event *events, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (events[i].type == MT_EVENT_MAPPING)
			sum += sizeof(*events[i].mapping);
		if (events[i].type == MT_EVENT_STACK)
			sum += sizeof(*events[i].stack) + 64 +
			       sizeof(uint64_t) * ((size_t)events[i].stack->regs_len +
						   events[i].stack->fp_chain_len);
	}
	return sum;
}

int mt_rewrite_flush(struct mt_rewrite *rw)
{
	struct mt_decoded decoded;
	int ret;

	if (rw->error || !rw->pending_events)
		return rw->error;
	ret = mt_frame_dec_run(rw->dec, rw->pending.data, rw->pending.len, &decoded);
	/* It was decoded before, in parts. */
	if (!ret && (decoded.consumed != rw->pending.len || decoded.n != rw->pending_events))
		ret = -EIO;
	if (ret)
		return rw->error = ret;
	rw->events += decoded.n;
	rw->pending.len = 0;
	rw->pending_events = 0;
	rw->pending_memory = 0;
	return write_frame(rw, decoded.events, decoded.n);
}

int mt_rewrite_join(struct mt_rewrite *rw, const struct mt_artifact_batch *batch,
		    uint64_t *ret_frame, uint64_t *ret_index)
{
	size_t memory = memory_of(batch->events, batch->n);
	bool small = batch->n <= MT_BATCH_EVENTS / 2 && batch->content_len <= JOINED_CONTENT / 2 &&
		     memory <= JOINED_MEMORY / 2 && is_as_ours(rw, batch);

	if (!small || rw->pending_events + batch->n > MT_BATCH_EVENTS ||
	    rw->pending.len + batch->content_len > JOINED_CONTENT ||
	    rw->pending_memory + memory > JOINED_MEMORY)
		(void)mt_rewrite_flush(rw);
	*ret_frame = rw->frames;
	*ret_index = rw->pending_events;
	if (!small)
		return mt_rewrite_batch(rw, batch);
	if (!rw->dec)
		rw->dec = mt_frame_dec_new();
	if (!rw->error &&
	    (!rw->dec || mt_buf_append(&rw->pending, batch->content, batch->content_len)))
		rw->error = -ENOMEM;
	rw->pending_events += batch->n;
	rw->pending_memory += memory;
	return rw->error;
}
