/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads that read, decompress and decode the data frames of an artifact ahead
 * of the one who reads it in order:
 *
 *     scout (the caller, inside take())        workers
 *     frame by frame through the file   --->   pread, zstd, msgpack, each frame
 *     by hints and headers                     in memory of its own
 *          <--- take(at): the frame that begins there, when it is done
 *
 * Only frames as writers make them are given: whole, of at most MT_CREW_INPUT
 * bytes with at most MT_CREW_CONTENT of content in one batch, and in order. All
 * else (damaged, cut, large) take() leaves to the caller, who reads it as he
 * would without a crew and says what is wrong with it. So a crew changes how
 * fast an artifact is read and nothing that is read.
 *
 * Memory: for each of the threads + 2 frames that are under way its content, a
 * batch of events and what belongs to them: 10 MB for frames of heap events, at
 * most MT_CREW_CONTENT + 28 MiB; and for each thread at most MT_CREW_INPUT +
 * MT_CREW_CONTENT. Whatever the file claims.
 *
 * Thread rule: one owner, who makes all calls. Descriptors are read by position
 * and never mapped: a file that shrinks costs the frames that are gone.
 */
#ifndef MT_COMMON_FRAME_CREW_H
#define MT_COMMON_FRAME_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/frame_dec.h"
#include "common/hint_walk.h"

#define MT_CREW_INPUT	    (8u << 20)
#define MT_CREW_CONTENT	    (8u << 20)
#define MT_CREW_THREADS_MAX 16u

struct mt_frame_crew;

/* A data frame that was decoded. */
struct mt_crew_frame {
	struct mt_frame_extent extent; /* whole_blocks is not counted */
	const uint8_t *content;	       /* NULL if it was searched and nothing found */
	struct mt_decoded decoded;     /* all its events; or, if searched, those searched for */
	struct mt_frame_hint seen;     /* of them, when the frame has a hint */
	bool searched;
};

/*
 * The crew of one file of `size` bytes. It reads with a descriptor of its own,
 * and takes hints and filter as they are in *walk now. 0 or negative errno.
 */
int mt_frame_crew_new(int fd, uint64_t size, unsigned int threads, const struct mt_hint_walk *walk,
		      struct mt_frame_crew **ret_crew);
void mt_frame_crew_free(struct mt_frame_crew *crew);

/*
 * The data frame that begins at `at`, or NULL when the caller has to read it
 * himself. It is valid until the next call. *hints: the caller's walk, with the
 * hint for this frame if there is one. Places that are asked for go up through
 * the file, else what was read ahead is thrown away.
 */
const struct mt_crew_frame *mt_frame_crew_take(struct mt_frame_crew *crew, uint64_t at,
					       const struct mt_hint_walk *hints);

#endif
