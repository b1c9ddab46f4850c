/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/hint_walk.h"

#include <errno.h>

#include "common/crc32c.h"
#include "common/format.h"

/* A frame is read as a whole up to the one size, and in pieces of the other beyond it. */
#define CHECK_WHOLE ((size_t)8 << 20)
#define CHECK_PIECE ((size_t)1 << 20)

int mt_hint_walk_meet(struct mt_hint_walk *walk, struct mt_artifact_source *src,
		      const struct mt_frame_extent *e)
{
	const uint8_t *p;
	size_t len;
	int ret;

	walk->for_at = UINT64_MAX;
	if (e->magic != MT_META_MAGIC || (e->end - e->start != MT_FRAME_HINT_BYTES &&
					  e->end - e->start != MT_CHECKED_HINT_BYTES))
		return 0;
	ret = mt_artifact_source_peek(src, e->start + MT_SKIPPABLE_HEAD,
				      (size_t)(e->end - e->start) - MT_SKIPPABLE_HEAD, &p, &len);
	if (ret)
		return ret;
	ret = mt_frame_hint_parse(p, len, &walk->hint);
	if (!ret)
		walk->for_at = e->end;
	return ret == -ENOENT ? 0 : ret ? ret : 1;
}

int mt_hint_walk_lands(const struct mt_hint_walk *walk, struct mt_artifact_source *src, uint64_t at)
{
	uint64_t end = at + walk->hint.frame_len;
	int ret;

	if (!mt_hint_walk_has(walk, at) || end <= at || end > src->size)
		return 0;
	ret = mt_artifact_source_is_data(src, at);
	if (ret == 1 && end != src->size)
		ret = mt_artifact_source_begins(src, end);
	return ret;
}

int mt_hint_walk_passes(const struct mt_hint_walk *walk, struct mt_artifact_source *src,
			uint64_t at)
{
	if (!walk->filtered || walk->for_at != at ||
	    mt_frame_hint_may_hold(&walk->hint, walk->filter.types, walk->filter.from_ns,
				   walk->filter.to_ns))
		return 0;
	return mt_hint_walk_lands(walk, src, at);
}

int mt_hint_walk_checks(const struct mt_hint_walk *walk, struct mt_artifact_source *src,
			const struct mt_frame_extent *e)
{
	uint64_t at = e->start, len = e->end - e->start;
	uint32_t crc = 0;

	if (!mt_hint_walk_has(walk, e->start) || !walk->hint.has_crc || e->cut ||
	    walk->hint.frame_len != len)
		return 1;
	while (at < e->end) {
		size_t want = CHECK_WHOLE, got;
		const uint8_t *p;
		int ret;

		/* What the source has at once will be decompressed from there. */
		if (len > CHECK_WHOLE)
			want = CHECK_PIECE;
		if (want > e->end - at)
			want = (size_t)(e->end - at);
		ret = mt_artifact_source_peek(src, at, want, &p, &got);
		if (ret)
			return ret;
		if (got < want)
			return 1; /* the file has lost its end: that is seen, and said, later */
		crc = mt_crc32c(crc, p, got);
		at += got;
	}
	return crc == walk->hint.crc;
}
