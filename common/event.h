/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An event of the artifact in memory: what the merge writes, the frame encoder
 * packs and the frame decoder gives back.
 *
 * Events are plain values of one fixed size, so that a batch of them is one
 * array. What does not fit (paths, stacks) is pointed to; whoever owns the
 * array owns what its events point to (a batch's arena when recording, the
 * decoder's scratch memory when reading) and both end together.
 *
 * Which member holds which field of the artifact, by type:
 *
 *   type                     size      aux                     member
 *   Malloc Calloc
 *   AlignedAlloc             size      0                       0
 *   Realloc                  size      old_addr, if HAS_OLD    0
 *   Free Exec Exit           0         0                       0
 *   Fork                     0         parent_pid (as int32)   0
 *   Mapping                  0         struct mt_mapping *     0
 *   Stack                    0         struct mt_stack *       0
 *   Rss                      size      0                       member
 *   Rmap                     0         delta (as int64)        member
 *   Mmap Munmap Brk          size      0                       0
 *
 * Thread rule: values; the owner of the array serialises access to it.
 */
#ifndef MT_COMMON_EVENT_H
#define MT_COMMON_EVENT_H

#include <assert.h>
#include <stdint.h>

enum mt_event_type {
	MT_EVENT_NONE = 0, /* never in a batch; a zeroed event is not an event */
	MT_EVENT_MALLOC,
	MT_EVENT_CALLOC,
	MT_EVENT_ALIGNED_ALLOC,
	MT_EVENT_REALLOC,
	MT_EVENT_FREE,
	MT_EVENT_FORK,
	MT_EVENT_EXEC,
	MT_EVENT_EXIT,
	MT_EVENT_MAPPING,
	MT_EVENT_STACK,
	MT_EVENT_RSS,
	MT_EVENT_RMAP,
	MT_EVENT_MMAP,
	MT_EVENT_MUNMAP,
	MT_EVENT_BRK,
	MT_EVENT_TYPES /* how many there are, NONE included */
};

/* Flags of an event. */
enum {
	MT_EVENT_HAS_OLD = 1, /* Realloc: `old_addr` is present, in aux (it may be 0) */
};

/* One executable file mapping. The path is not terminated by a NUL. */
struct mt_mapping {
	uint64_t dev; /* major << 20 | minor */
	uint64_t ino;
	uint64_t file_offset;
	uint64_t len; /* bytes */
	const char *path;
	uint32_t path_len;
};

/* The definition of one stack hash. */
struct mt_stack {
	uint64_t hash;
	uint64_t sp;
	const uint64_t *regs;
	const uint8_t *bytes;
	const uint64_t *fp_chain; /* innermost frame first */
	uint32_t regs_len;
	uint32_t bytes_len;
	uint32_t fp_chain_len;
	uint8_t truncated; /* 0 or 1 */
};

struct mt_event {
	uint64_t timestamp_ns; /* CLOCK_MONOTONIC */
	uint64_t addr;
	uint64_t size;
	union {
		uint64_t aux;
		int64_t delta;
		const struct mt_mapping *mapping;
		const struct mt_stack *stack;
	};
	uint64_t stack_hash; /* 0: none */
	int32_t pid;
	int32_t tid;
	int32_t member;
	uint8_t type;  /* enum mt_event_type */
	uint8_t flags; /* MT_EVENT_HAS_OLD */
	uint16_t reserved;
};

static_assert(sizeof(struct mt_event) == 56, "an event is 56 bytes");

/* Events of one data frame at most; a format limit. */
#define MT_BATCH_EVENTS 65536u

#endif
