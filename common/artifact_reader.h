/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads an artifact in order: batches of events, and the metadata between
 * them. Takes what any writer may make of the format, and what is left of a
 * file that was cut or damaged:
 *
 * - cut: the events in the whole zstd blocks of the last frame still come,
 *   then the end, with a diag of kind MT_DIAG_CUT. A file that is still being
 *   written looks like this, or just ends; mt_artifact_reader_closed() tells.
 * - damaged: the events before the damaged frame come, then -EBADMSG with a
 *   diag that names frame and offset. mt_artifact_reader_skip_damaged() goes
 *   on behind the frame. (A foreign frame of more than some MiB of content is
 *   given in parts, as it is decompressed: there its head may have come.)
 *
 * Memory is bounded whatever the file claims: the window of the frame (as its
 * header claims, at most 128 MiB, and allocated but not touched before it is
 * filled), 16 MiB of content, a batch of events and what belongs to them
 * (below 32 MiB), and MT_META_TOTAL_MAX of metadata.
 *
 * With use_threads() frames are read, decompressed and decoded ahead by as many
 * threads (frame_crew.h, which says what memory they take); what next() gives is
 * the same.
 *
 * Thread rule: one owner. Several readers may read one file.
 */
#ifndef MT_COMMON_ARTIFACT_READER_H
#define MT_COMMON_ARTIFACT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/artifact_filter.h"
#include "common/artifact_source.h"
#include "common/diag.h"
#include "common/event.h"
#include "common/meta_value.h"

struct mt_artifact_reader;

/* Events of one data frame, all of them or the next part; the reader's until the next call. */
struct mt_artifact_batch {
	const struct mt_event *events;
	size_t n;
	uint64_t frame;	   /* data frames counted from 0 */
	uint64_t in_frame; /* place of events[0] in its frame, events of unknown types counted */
	uint64_t offset;   /* of the frame in the file */
	bool cut;	   /* the file ends inside this frame */
	/* The events as they stand in the frame, with those that a filter or their type left out.
	 */
	const uint8_t *content;
	size_t content_len;
};

/* What has been seen so far. */
struct mt_artifact_totals {
	uint64_t size;		   /* bytes of the file */
	uint64_t frames;	   /* data frames */
	uint64_t events;	   /* of known types */
	uint64_t unknown;	   /* events of types that we do not know */
	char unknown_name[32];	   /* the first such type */
	uint64_t skippable;	   /* skippable frames of all kinds */
	uint64_t metadata;	   /* of them, ours and read */
	uint64_t bad_metadata;	   /* of them, ours and damaged */
	uint64_t dropped_metadata; /* of them, ours and beyond MT_META_TOTAL_MAX */
	uint64_t hints;		   /* of them, hints met by next() */
	uint64_t bad_hints;	   /* of them, hints whose checksum does not hold: not used */
	uint64_t passed_frames;	   /* data frames that were not read, thanks to their hints */
	uint64_t searched_frames;  /* data frames that were searched, their other events not counted
				    */
};

/*
 * Both: 0, or negative errno with *diag. The descriptor is taken over, also on
 * failure. -EBADMSG: this is no artifact. An empty file opens, and is cut.
 */
int mt_artifact_reader_open(const char *path, struct mt_artifact_reader **ret,
			    struct mt_diag *diag);
int mt_artifact_reader_open_fd(int fd, struct mt_artifact_reader **ret, struct mt_diag *diag);
void mt_artifact_reader_close(struct mt_artifact_reader *reader);

/*
 * From now on next() gives only the events that the filter wants. Frames whose
 * hint says that they hold none are not read at all. A batch's in_frame is then
 * the place of the first event looked at.
 */
void mt_artifact_reader_filter(struct mt_artifact_reader *reader,
			       const struct mt_artifact_filter *filter);
/*
 * Hints are used unless this says no. A hint that is wrong about a frame that
 * is read is damage of that frame; it shows when the frame has been given.
 */
void mt_artifact_reader_use_hints(struct mt_artifact_reader *reader, bool use);
/*
 * Decodes with so many threads beside the caller's own; 0, as at first: with
 * none. ALL_CORES: one for each processor that there is, or none where the file
 * is too small to be worth it.
 */
void mt_artifact_reader_use_threads(struct mt_artifact_reader *reader, unsigned int n);
#define MT_ARTIFACT_ALL_CORES (~0u)

/*
 * Calls back for each frame that next() has read as a whole, with what `extent`
 * says of it: a data frame behind its last batch, before its hint is held
 * against it; a skippable frame as it is met. And batches that hold nothing but
 * events of unknown types are given too. For who copies artifacts.
 */
typedef void mt_artifact_observer(void *data, const struct mt_frame_extent *extent);
void mt_artifact_reader_observe(struct mt_artifact_reader *reader, mt_artifact_observer *observer,
				void *data);
/* Bytes of the file, as mt_artifact_source_peek() gives them; valid until the next call. */
int mt_artifact_reader_bytes(struct mt_artifact_reader *reader, uint64_t at, size_t len,
			     const uint8_t **ret_bytes, size_t *ret_len);

/* 1 with a batch of at least one event; 0 at the end; -EBADMSG or another negative errno. */
int mt_artifact_reader_next(struct mt_artifact_reader *reader, struct mt_artifact_batch *ret);
/* Why next() failed, or MT_DIAG_CUT after an end that is none, or MT_DIAG_NONE. */
const struct mt_diag *mt_artifact_reader_diag(const struct mt_artifact_reader *reader);
/*
 * After -EBADMSG from next(): makes it go on with the next frame that can be
 * found. False, and nothing changed, when there is none or that was not it.
 */
bool mt_artifact_reader_skip_damaged(struct mt_artifact_reader *reader);

const struct mt_artifact_totals *mt_artifact_reader_totals(const struct mt_artifact_reader *reader);

/*
 * Metadata that has been passed by next(), or all at once by load_meta(), which
 * hops over the data. load_meta() returns 0, or a negative errno when reading
 * failed; where the file is cut or damaged it just ends.
 */
int mt_artifact_reader_load_meta(struct mt_artifact_reader *reader);
/* The nth map of this name, from 0 in the file's order; any name for NULL. */
bool mt_artifact_reader_meta(const struct mt_artifact_reader *reader, const char *name, size_t nth,
			     struct mt_meta_value *ret_map);
/* The last metadata frame seen is "closed": the writer has finished the file. */
bool mt_artifact_reader_closed(const struct mt_artifact_reader *reader);

#endif
