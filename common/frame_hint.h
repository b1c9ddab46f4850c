/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hint: a small skippable frame directly before a data frame that says what
 * is in it, so that a reader which looks for something else passes it by.
 *
 * Payload, little-endian, behind the head of format.h with kind MT_META_HINT:
 *
 *   0         8        12         16      20      24      28       32       40
 *   +---------+--------+----------+-------+-------+-------+--------+--------+--------+
 *   | length  | events | Mapping  | Fork  | Exec  | Exit  | Stack  | lowest |highest |
 *   | of data |        | events   |       |       |       |        | time   | time   |
 *   +---------+--------+----------+-------+-------+-------+--------+--------+--------+
 *
 * Version 2 has the CRC-32C of the data frame behind that, at 48: 4 bytes.
 *
 * A hint comes from a file that nobody vouches for: it is used when its
 * checksum holds and its length ends where a frame ends, and it is held
 * against the events whenever the frame is decoded.
 *
 * Thread rule: values and pure functions.
 */
#ifndef MT_COMMON_FRAME_HINT_H
#define MT_COMMON_FRAME_HINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"
#include "common/format.h"

#define MT_FRAME_HINT_PAYLOAD 48u
/* The whole skippable frame: of version 1, and of version 2. */
#define MT_FRAME_HINT_BYTES   (MT_SKIPPABLE_HEAD + MT_META_HEAD + MT_FRAME_HINT_PAYLOAD)
#define MT_CHECKED_HINT_BYTES (MT_FRAME_HINT_BYTES + 4)

struct mt_frame_hint {
	uint64_t frame_len; /* bytes of the data frame */
	uint32_t events;
	uint32_t mappings;
	uint32_t forks;
	uint32_t execs;
	uint32_t exits;
	uint32_t stacks;
	uint64_t first_ns; /* lowest and highest timestamp; both 0 without events */
	uint64_t last_ns;
	bool has_crc; /* of version 2 */
	uint32_t crc; /* CRC-32C of the data frame, from its magic to its end */
};

/* Counts these events too; zeroed is the hint of none. Leaves frame_len and the CRC alone. */
void mt_frame_hint_add(struct mt_frame_hint *hint, const struct mt_event *events, size_t n);

/* Version 1, as older writers make it. */
void mt_frame_hint_write(const struct mt_frame_hint *hint, uint8_t out[MT_FRAME_HINT_BYTES]);
/* Version 2, with the hint's CRC. */
void mt_frame_hint_write_checked(const struct mt_frame_hint *hint,
				 uint8_t out[MT_CHECKED_HINT_BYTES]);

/*
 * What stands inside a skippable frame of ours. 0; -ENOENT when it is no hint
 * that we can read; -EBADMSG when it says it is one and is damaged.
 */
int mt_frame_hint_parse(const uint8_t *inside, size_t len, struct mt_frame_hint *ret_hint);

/* What they say of the events; a CRC is none of that. */
bool mt_frame_hint_equal(const struct mt_frame_hint *a, const struct mt_frame_hint *b);

/*
 * Whether the frame can hold an event of one of `types` (bits 1 << enum
 * mt_event_type) with a time from from_ns to to_ns.
 */
bool mt_frame_hint_may_hold(const struct mt_frame_hint *hint, uint32_t types, uint64_t from_ns,
			    uint64_t to_ns);

#endif
