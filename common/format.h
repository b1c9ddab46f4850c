/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The artifact's numbers and names, for all who write or read it. What they
 * mean is in docs/format.md.
 */
#ifndef MT_COMMON_FORMAT_H
#define MT_COMMON_FORMAT_H

#include <stdint.h>

#define MT_ARTIFACT_SUFFIX ".MemtrackArtifact.msgpack"

/* zstd's own magics, as little-endian words at the head of a frame. */
#define MT_ZSTD_MAGIC	   0xfd2fb528u
#define MT_SKIPPABLE_MAGIC 0x184d2a50u /* to ...5f */
#define MT_SKIPPABLE_MASK  0xfffffff0u
#define MT_SKIPPABLE_HEAD  8u /* magic and length, 4 bytes each */

/* A block of a zstd frame gives at most this much content. */
#define MT_ZSTD_BLOCK_MAX (128u << 10)

/*
 * Our skippable frames: the magic, then inside the frame a head of 12 bytes,
 * then the payload.
 *
 *   0        4         5      6          8          12
 *   +--------+---------+------+----------+----------+----------
 *   | "MTRK" | version | kind | reserved | CRC-32   | payload ...
 *   +--------+---------+------+----------+----------+----------
 */
#define MT_META_MAGIC		0x184d2a5du
#define MT_META_TAG		"MTRK"
#define MT_META_VERSION		1u
#define MT_HINT_VERSION_CHECKED 2u /* of a hint: with a checksum of the data frame */
#define MT_META_HEAD		12u

enum mt_meta_kind {
	MT_META_MAP = 1,  /* payload: one msgpack map, see docs/format.md */
	MT_META_HINT = 2, /* kept for a hint before a data frame */
};

/* The names of our metadata maps: the value of their key "frame". */
#define MT_META_OPEN	  "open"
#define MT_META_CLOSED	  "closed"
#define MT_META_ANOMALIES "anomalies"
#define MT_META_REPAIRED  "repaired"

/* At most this many anomalies are listed; all are counted. */
#define MT_ANOMALIES_LISTED 1000u

/*
 * Limits. The first is the format's, the others are what our readers take:
 * larger claims are damage.
 */
#define MT_EVENT_BYTES_MAX   (16u << 20)  /* one event, packed */
#define MT_EVENT_ARRAY_MAX   (1u << 20)	  /* elements of regs and of fp_chain */
#define MT_META_BYTES_MAX    (16u << 20)  /* payload of one metadata frame */
#define MT_META_DEPTH_MAX    16u	  /* nested maps and arrays of metadata */
#define MT_META_TOTAL_MAX    (64u << 20)  /* metadata kept of one file */
#define MT_FRAME_WINDOW_LOG  27		  /* zstd window: 128 MiB, what level 22 needs */
#define MT_FRAME_CONTENT_MAX (256u << 20) /* what our encoder puts into one frame */

/* Types of events by their name in the artifact: X(constant's end, name). */
#define MT_EVENT_NAMES(X)                \
	X(MALLOC, "Malloc")              \
	X(CALLOC, "Calloc")              \
	X(ALIGNED_ALLOC, "AlignedAlloc") \
	X(REALLOC, "Realloc")            \
	X(FREE, "Free")                  \
	X(FORK, "Fork")                  \
	X(EXEC, "Exec")                  \
	X(EXIT, "Exit")                  \
	X(MAPPING, "Mapping")            \
	X(STACK, "Stack")                \
	X(RSS, "Rss")                    \
	X(RMAP, "Rmap")                  \
	X(MMAP, "Mmap")                  \
	X(MUNMAP, "Munmap")              \
	X(BRK, "Brk")

#endif
