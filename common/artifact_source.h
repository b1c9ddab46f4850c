/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The bytes of an artifact, and where its frames are. Read by position into a
 * window, not mapped: a file that shrinks under us (its writer cuts back what
 * a full disk did not take) must not kill the reader.
 *
 * The size is taken at open; what is appended later is not seen. What is not a
 * regular file (a pipe) is first copied to a temporary file without a name.
 *
 * Thread rule: one owner. Several sources may read one file.
 */
#ifndef MT_COMMON_ARTIFACT_SOURCE_H
#define MT_COMMON_ARTIFACT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/format.h"

struct mt_artifact_source {
	int fd;
	uint64_t size;
	struct mt_buf window; /* `len` bytes of the file from window_at */
	uint64_t window_at;
	size_t read_ahead; /* bytes read at once at least; for who hops, less is faster */
};

/* Takes the descriptor, also on failure. 0 or negative errno. */
int mt_artifact_source_open(struct mt_artifact_source *src, int fd);
void mt_artifact_source_close(struct mt_artifact_source *src);

/*
 * Gives the bytes at `at`: as many of `len` as the file has, fewer at its end
 * only. They are valid until the next call. A file found shorter than it was
 * has its size corrected. 0 or negative errno.
 */
int mt_artifact_source_peek(struct mt_artifact_source *src, uint64_t at, size_t len,
			    const uint8_t **ret_bytes, size_t *ret_len);

/* One frame, found by its headers alone: nothing is decompressed. */
struct mt_frame_extent {
	uint32_t magic;
	uint64_t start;
	uint64_t end;	       /* behind the frame; the end of the file if it is cut */
	uint64_t whole_blocks; /* of a data frame: zstd blocks that are whole */
	uint64_t content_size; /* as the header claims; UINT64_MAX if it does not */
	bool cut;	       /* the file ends inside it */
};

static inline bool mt_frame_is_skippable(const struct mt_frame_extent *extent)
{
	return (extent->magic & MT_SKIPPABLE_MASK) == MT_SKIPPABLE_MAGIC;
}

/*
 * The frame that begins at `at`. 1; 0 at the end of the file; -EBADMSG when
 * there is no frame or its headers are damaged, with *ret_why and what could be
 * read of it (its end is not known); another negative errno when reading failed.
 */
int mt_artifact_source_frame(struct mt_artifact_source *src, uint64_t at,
			     struct mt_frame_extent *ret, const char **ret_why);

/*
 * Whether the magic of a frame stands at `at`, or the part of one that the end
 * of the file left. 1, 0 (also at the end) or negative errno.
 */
int mt_artifact_source_begins(struct mt_artifact_source *src, uint64_t at);

/* The same for a whole magic of a data frame. */
int mt_artifact_source_is_data(struct mt_artifact_source *src, uint64_t at);

/*
 * Searches the first frame that begins behind *at. 1 with its place in *at, 0
 * or negative errno. If there is one, then a frame at `at` that seems to be cut
 * is in truth damaged: a wrong length makes it look as if it went on to the end
 * of the file.
 */
int mt_artifact_source_find_frame(struct mt_artifact_source *src, uint64_t *at);

#endif
