/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The events that an artifact's metadata names by frame and index, and where they are in a file
 * whose frames are made anew: the "anomalies" list them.
 *
 * Threads: one.
 */
#ifndef MT_TOOLS_FRAME_REFS_H
#define MT_TOOLS_FRAME_REFS_H

#include <stddef.h>
#include <stdint.h>

#include "common/artifact_reader.h"
#include "common/meta_builder.h"

struct mt_frame_ref {
	uint64_t frame, index;
	uint64_t new_frame, new_index; /* UINT64_MAX: there is no such event */
};

/* A zeroed one is empty and valid. */
struct mt_frame_refs {
	struct mt_frame_ref *list; /* in the file's order */
	size_t count, cap;
	size_t next; /* those before it have their places */
};

/* Gathers what the reader's metadata names, which has to be loaded. 0 or -ENOMEM. */
int mt_frame_refs_load(struct mt_frame_refs *refs, const struct mt_artifact_reader *reader);
void mt_frame_refs_fini(struct mt_frame_refs *refs);

/*
 * The `count` events from place `index` on of the old frame are in the new frame from `new_index`
 * on. To be told of all events, in the file's order.
 */
void mt_frame_refs_moved(struct mt_frame_refs *refs, uint64_t frame, uint64_t index, uint64_t count,
			 uint64_t new_frame, uint64_t new_index);

/*
 * Puts an "anomalies" map into an empty builder, its events named anew; those that there are not
 * are left out.
 */
void mt_frame_refs_put(const struct mt_frame_refs *refs, const struct mt_meta_value *anomalies,
		       struct mt_meta_builder *builder);

#endif
