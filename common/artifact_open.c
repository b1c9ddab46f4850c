/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/artifact_reader_internal.h"
#include "common/format.h"

int mt_reader_take_meta(struct mt_artifact_reader *r, const struct mt_frame_extent *e)
{
	uint64_t inside_len = e->end - e->start - MT_SKIPPABLE_HEAD;
	const uint8_t *p;
	size_t len;
	int ret;

	if (e->start < r->meta_seen)
		return 0;
	r->meta_seen = e->end;
	r->totals.skippable++;
	if (e->magic != MT_META_MAGIC)
		return 0;
	ret = mt_artifact_source_peek(&r->src, e->start + MT_SKIPPABLE_HEAD, MT_META_HEAD, &p,
				      &len);
	if (ret)
		return ret;
	if (len == MT_META_HEAD && p[5] == MT_META_HINT)
		return 0;
	if (!mt_artifact_meta_room(&r->meta, inside_len)) {
		r->totals.dropped_metadata++;
		return 0;
	}
	ret = mt_artifact_source_peek(&r->src, e->start + MT_SKIPPABLE_HEAD, (size_t)inside_len, &p,
				      &len);
	if (!ret)
		ret = mt_artifact_meta_add(&r->meta, p, len);
	r->totals.bad_metadata += ret == -EBADMSG;
	r->totals.metadata += ret == 0;
	return ret == -EBADMSG || ret == -ENOENT ? 0 : ret;
}

int mt_reader_take_hint(struct mt_artifact_reader *r, const struct mt_frame_extent *e)
{
	int ret = mt_hint_walk_meet(&r->hints, &r->src, e);

	r->totals.hints += ret == 1;
	r->totals.bad_hints += ret == -EBADMSG;
	return ret < 0 && ret != -EBADMSG ? ret : 0;
}

/* One step of load_meta(). 1 with *at moved on; 0 when there is nothing more; negative errno. */
static int hop(struct mt_artifact_reader *r, uint64_t *at)
{
	struct mt_frame_extent e;
	const char *why;
	int ret = mt_hint_walk_lands(&r->hints, &r->src, *at);

	if (ret) {
		*at += ret == 1 ? r->hints.hint.frame_len : 0;
		return ret;
	}
	ret = mt_artifact_source_frame(&r->src, *at, &e, &why);
	/* The last metadata says how the run ended: look behind damage too. */
	if (ret == -EBADMSG || (ret == 1 && e.cut))
		return mt_artifact_source_find_frame(&r->src, at);
	if (ret != 1)
		return ret;
	if (mt_frame_is_skippable(&e)) {
		ret = mt_reader_take_hint(r, &e);
		if (!ret)
			ret = mt_reader_take_meta(r, &e);
		if (ret)
			return ret;
	}
	*at = e.end;
	return 1;
}

int mt_artifact_reader_load_meta(struct mt_artifact_reader *r)
{
	struct mt_hint_walk walk = r->hints;
	uint64_t at = 0, hints = r->totals.hints, bad_hints = r->totals.bad_hints;
	size_t read_ahead = r->src.read_ahead;
	int ret;

	r->src.read_ahead = MT_READER_HOP_READ;
	do {
		ret = hop(r, &at);
	} while (ret == 1);
	r->src.read_ahead = read_ahead;
	/* next() is where it was. */
	r->hints = walk;
	r->totals.hints = hints;
	r->totals.bad_hints = bad_hints;
	return ret;
}

bool mt_artifact_reader_meta(const struct mt_artifact_reader *r, const char *name, size_t nth,
			     struct mt_meta_value *ret_map)
{
	return mt_artifact_meta_find(&r->meta, name, nth, ret_map);
}

bool mt_artifact_reader_closed(const struct mt_artifact_reader *r)
{
	return mt_artifact_meta_ends_with(&r->meta, MT_META_CLOSED);
}

int mt_artifact_reader_bytes(struct mt_artifact_reader *r, uint64_t at, size_t len,
			     const uint8_t **ret_bytes, size_t *ret_len)
{
	return mt_artifact_source_peek(&r->src, at, len, ret_bytes, ret_len);
}

const struct mt_diag *mt_artifact_reader_diag(const struct mt_artifact_reader *r)
{
	return &r->diag;
}

const struct mt_artifact_totals *mt_artifact_reader_totals(const struct mt_artifact_reader *r)
{
	return &r->totals;
}

/* A file that does not begin with a frame is something else altogether. */
static int check_head(struct mt_artifact_reader *r, struct mt_diag *diag)
{
	size_t read_ahead = r->src.read_ahead;
	int ret;

	/* How the file will be read is not known yet. */
	r->src.read_ahead = MT_READER_HOP_READ;
	ret = mt_artifact_source_begins(&r->src, 0);
	r->src.read_ahead = read_ahead;
	if (ret < 0) {
		mt_diag_set(diag, MT_DIAG_SYSTEM, 0, 0, "reading failed: %s", strerror(-ret));
		return ret;
	}
	if (!ret && r->src.size) {
		mt_diag_set(diag, MT_DIAG_NOT_OURS, 0, 0,
			    "not a memtrack artifact: it does not begin with a zstd frame");
		return -EBADMSG;
	}
	return 0;
}

int mt_artifact_reader_open_fd(int fd, struct mt_artifact_reader **ret_reader, struct mt_diag *diag)
{
	struct mt_artifact_reader *r = calloc(1, sizeof(*r));
	int ret;

	if (diag)
		*diag = (struct mt_diag){ 0 };
	if (!r) {
		mt_diag_set(diag, MT_DIAG_SYSTEM, 0, 0, "out of memory");
		return -ENOMEM;
	}
	ret = mt_artifact_source_open(&r->src, fd);
	if (ret) {
		mt_diag_set(diag, MT_DIAG_SYSTEM, 0, 0, "cannot be read: %s", strerror(-ret));
		goto fail;
	}
	r->totals.size = r->src.size;
	r->hints.use = true;
	r->hints.for_at = UINT64_MAX;
	r->dec = mt_frame_dec_new();
	r->dctx = ZSTD_createDCtx();
	if (!r->dec || !r->dctx ||
	    ZSTD_isError(
		    ZSTD_DCtx_setParameter(r->dctx, ZSTD_d_windowLogMax, MT_FRAME_WINDOW_LOG))) {
		ret = -ENOMEM;
		mt_diag_set(diag, MT_DIAG_SYSTEM, 0, 0, "out of memory");
		goto fail;
	}
	ret = check_head(r, diag);
	if (ret)
		goto fail;
	*ret_reader = r;
	return 0;
fail:
	mt_artifact_reader_close(r);
	return ret;
}

int mt_artifact_reader_open(const char *path, struct mt_artifact_reader **ret_reader,
			    struct mt_diag *diag)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		int err = errno;

		mt_diag_set(diag, MT_DIAG_SYSTEM, 0, 0, "cannot be opened: %s", strerror(err));
		return -err;
	}
	return mt_artifact_reader_open_fd(fd, ret_reader, diag);
}

void mt_artifact_reader_close(struct mt_artifact_reader *r)
{
	if (!r)
		return;
	mt_frame_crew_free(r->crew);
	mt_artifact_source_close(&r->src);
	ZSTD_freeDCtx(r->dctx);
	mt_frame_dec_free(r->dec);
	mt_buf_fini(&r->content);
	mt_artifact_meta_fini(&r->meta);
	free(r);
}
