/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Hints as one meets them going from frame to frame: which frame the last one
 * was for, whether it can be believed, and whether the frame can be passed.
 *
 * Thread rule: one owner.
 */
#ifndef MT_COMMON_HINT_WALK_H
#define MT_COMMON_HINT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/artifact_filter.h"
#include "common/artifact_source.h"
#include "common/frame_hint.h"

struct mt_hint_walk {
	bool use;	 /* no: hints are read and not used */
	bool filtered;	 /* something is looked for: `filter` */
	uint64_t for_at; /* where the frame of `hint` begins; UINT64_MAX: no hint */
	struct mt_frame_hint hint;
	struct mt_artifact_filter filter;
};

/*
 * A skippable frame is met: keeps it if it is a hint. 1; 0 when it is none;
 * -EBADMSG when it is a damaged one, which is as good as none; another negative
 * errno when reading failed.
 */
int mt_hint_walk_meet(struct mt_hint_walk *walk, struct mt_artifact_source *src,
		      const struct mt_frame_extent *extent);

/* The hint for the frame that begins at `at` is there and in use. */
static inline bool mt_hint_walk_has(const struct mt_hint_walk *walk, uint64_t at)
{
	return walk->use && walk->for_at == at;
}

/*
 * Whether the hint can be believed so far as to hop over its frame, which
 * begins at `at`: a data frame stands there, and where it ends something else
 * begins or the file ends. 1, 0 or negative errno.
 */
int mt_hint_walk_lands(const struct mt_hint_walk *walk, struct mt_artifact_source *src,
		       uint64_t at);

/*
 * Whether the data frame is as its hint's checksum says: 1, also where there is
 * none to hold it against; 0; or negative errno.
 */
int mt_hint_walk_checks(const struct mt_hint_walk *walk, struct mt_artifact_source *src,
			const struct mt_frame_extent *extent);

/* The same as lands(), and by the hint the frame holds nothing of what is looked for. */
int mt_hint_walk_passes(const struct mt_hint_walk *walk, struct mt_artifact_source *src,
			uint64_t at);

#endif
