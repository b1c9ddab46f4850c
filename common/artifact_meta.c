/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/artifact_meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"

struct mt_artifact_meta_frame {
	uint8_t *inside;
	struct mt_meta_value map; /* points into it */
};

bool mt_artifact_meta_room(const struct mt_artifact_meta *meta, uint64_t inside_len)
{
	return inside_len <= MT_META_HEAD + MT_META_BYTES_MAX &&
	       meta->bytes + sizeof(*meta->frames) + inside_len <= MT_META_TOTAL_MAX;
}

int mt_artifact_meta_add(struct mt_artifact_meta *meta, const uint8_t *inside, size_t len)
{
	struct mt_artifact_meta_frame frame = { 0 };
	int ret = -ENOMEM;

	if (meta->n == meta->cap) {
		size_t cap = meta->cap ? 2 * meta->cap : 8;
		void *frames = realloc(meta->frames, cap * sizeof(*meta->frames));

		if (!frames)
			return -ENOMEM;
		meta->frames = frames;
		meta->cap = cap;
	}
	frame.inside = malloc(len ? len : 1);
	if (frame.inside) {
		if (len)
			memcpy(frame.inside, inside, len);
		ret = mt_meta_parse(frame.inside, len, &frame.map);
	}
	if (ret) {
		free(frame.inside);
		return ret;
	}
	meta->frames[meta->n++] = frame;
	meta->bytes += sizeof(frame) + len;
	return 0;
}

static bool named(const struct mt_artifact_meta_frame *frame, const char *name)
{
	const char *have;
	size_t len;

	return mt_meta_get_text(&frame->map, "frame", &have, &len) && len == strlen(name) &&
	       !memcmp(have, name, len);
}

bool mt_artifact_meta_find(const struct mt_artifact_meta *meta, const char *name, size_t nth,
			   struct mt_meta_value *ret_map)
{
	for (size_t i = 0; i < meta->n; i++) {
		if (name && !named(&meta->frames[i], name))
			continue;
		if (!nth--) {
			*ret_map = meta->frames[i].map;
			return true;
		}
	}
	return false;
}

bool mt_artifact_meta_ends_with(const struct mt_artifact_meta *meta, const char *name)
{
	return meta->n && named(&meta->frames[meta->n - 1], name);
}

void mt_artifact_meta_fini(struct mt_artifact_meta *meta)
{
	for (size_t i = 0; i < meta->n; i++)
		free(meta->frames[i].inside);
	free(meta->frames);
	*meta = (struct mt_artifact_meta){ 0 };
}
