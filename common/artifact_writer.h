/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Appends whole frames to an artifact's descriptor, which stays the caller's.
 * After each call the file holds whole frames only, also when a write failed
 * half-way: then it is cut back to its last whole frame, so that it stays
 * readable and later frames may be appended again (a full disk may have room
 * later). What is not a regular file cannot be cut back; there a half-written
 * frame ends the writing for good.
 *
 * SIGXFSZ has to be ignored for EFBIG to be seen.
 *
 * Thread rule: one owner.
 */
#ifndef MT_COMMON_ARTIFACT_WRITER_H
#define MT_COMMON_ARTIFACT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_artifact_writer {
	int fd;
	bool regular;	    /* positions are known, and it can be cut back */
	bool half;	    /* half a frame is at the end and could not be taken away */
	bool disturbed;	    /* its size was not what we had left it at: others write to it */
	uint64_t start;	    /* where in the file our first frame stands */
	uint64_t bytes;	    /* of whole frames written */
	uint64_t frames;    /* of them, of whatever kind */
	uint64_t max_bytes; /* mt_artifact_writer_append() goes no further; 0: no limit */
	uint64_t taken;	    /* bytes that the output took, as it takes them; any thread may look */
};

/*
 * Writing begins at the file's position and nothing is expected behind it. 0,
 * -EINVAL for a regular file opened with O_APPEND, or what fstat() says.
 */
int mt_artifact_writer_init(struct mt_artifact_writer *w, int fd, uint64_t max_bytes);

/* Looks whether its size is what we have left it at: else it counts as disturbed from now on. */
void mt_artifact_writer_look(struct mt_artifact_writer *w);

/*
 * Writes one whole frame, or several at once that belong together. 0, or
 * negative errno with nothing added: -ENOSPC and -EDQUOT for a full disk,
 * -EFBIG for a limit of the system or max_bytes, -EPIPE behind half
 * a frame in a pipe, and whatever else write() and ftruncate() say.
 */
int mt_artifact_writer_append(struct mt_artifact_writer *w, const void *frame, size_t len);
/* The same, not held to max_bytes: for the metadata that ends the file. */
int mt_artifact_writer_append_last(struct mt_artifact_writer *w, const void *frame, size_t len);

#endif
