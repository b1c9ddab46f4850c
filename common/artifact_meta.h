/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The metadata maps of one artifact, kept in the file's order and within
 * MT_META_TOTAL_MAX. Zeroed is empty.
 *
 * Thread rule: one owner.
 */
#ifndef MT_COMMON_ARTIFACT_META_H
#define MT_COMMON_ARTIFACT_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/meta_value.h"

struct mt_artifact_meta_frame;

struct mt_artifact_meta {
	struct mt_artifact_meta_frame *frames;
	size_t n;
	size_t cap;
	size_t bytes;
};

/* Whether one more frame with so much inside may be added. */
bool mt_artifact_meta_room(const struct mt_artifact_meta *meta, uint64_t inside_len);
/* Copies what stands inside a frame. 0, -ENOMEM, or what mt_meta_parse() says. */
int mt_artifact_meta_add(struct mt_artifact_meta *meta, const uint8_t *inside, size_t len);
/* The nth of this name, from 0; any name for NULL. */
bool mt_artifact_meta_find(const struct mt_artifact_meta *meta, const char *name, size_t nth,
			   struct mt_meta_value *ret_map);
/* Whether the last one has this name. */
bool mt_artifact_meta_ends_with(const struct mt_artifact_meta *meta, const char *name);
void mt_artifact_meta_fini(struct mt_artifact_meta *meta);

#endif
