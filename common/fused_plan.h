/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Planning: the events of one block -> sequences and literals. What they are
 * and how they are found is told in fused_plan.c.
 *
 * Thread rule: one owner.
 */
#ifndef MT_COMMON_FUSED_PLAN_H
#define MT_COMMON_FUSED_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"
#include "common/frame_enc.h"
#include "common/fused_seq.h"

#define MT_FUSED_EXACT_LOG   12
#define MT_FUSED_NEAR_LOG    10
#define MT_FUSED_ALIKE_LOG   10
#define MT_FUSED_THREADS_LOG 8

/*
 * Where an event's content stands, and above it the event's shape: 0 when no
 * later event may be laid over it.
 */
#define MT_FUSED_MARK(shape, pos) ((uint64_t)(shape) << 32 | (pos))
#define MT_FUSED_MARK_POS(mark)	  ((uint32_t)(mark))

/* A thread of the frame. */
struct mt_fused_thread {
	uint64_t ids;	/* pid and tid as they stand in the event */
	uint32_t shape; /* its part of a shape: its number; 0: too many threads, none */
	uint32_t len;	/* bytes from the event's begin to the timestamp */
};

/* Events are numbered from 1, so that a table of zeros holds none. */
struct mt_fused_plan {
	struct mt_frame_enc *serializer; /* for events that are taken byte by byte */
	const struct mt_event *events;	 /* of the frame */
	uint32_t n;
	uint32_t next; /* events before it are planned */
	uint32_t pos;  /* content of the planned events */
	uint32_t threads_n;
	uint32_t slow_events; /* that were taken byte by byte */
	struct mt_fused_out out;
	/* The last event of a thread with this shape, size and stack; with this shape. */
	uint16_t exact[1 << MT_FUSED_EXACT_LOG];
	uint16_t near[1 << MT_FUSED_NEAR_LOG];
	/* For events with no like of their thread: the last of any thread with this shape, type. */
	uint16_t alike[1 << MT_FUSED_ALIKE_LOG];
	uint16_t of_type[MT_EVENT_TYPES];
	/* For those with no like of their thread: the last with the same parts, of any widths. */
	uint16_t of_parts[MT_EVENT_TYPES * 4];
	struct mt_fused_thread threads[1 << MT_FUSED_THREADS_LOG];
	uint64_t marks[MT_BATCH_EVENTS + 1];
	uint8_t bytes[MT_FUSED_EVENT_MAX];
	struct mt_fused_seq seqs[MT_FUSED_SEQS_MAX];
};

/* Without the thread's number, a shape is so many bits. */
#define MT_FUSED_THREAD_SHIFT 19

/* The place for events of this shape, whatever their thread, and these widths of pid and tid. */
MT_FUSED_LOOP uint16_t *mt_fused_alike(struct mt_fused_plan *plan, uint32_t shape, uint32_t ids_end)
{
	uint32_t key =
		(shape & ((1u << MT_FUSED_THREAD_SHIFT) - 1)) ^ ids_end << MT_FUSED_THREAD_SHIFT;

	return &plan->alike[(key * 0x9e3779b1u) >> (32 - MT_FUSED_ALIKE_LOG)];
}

/* The frame is one for libzstd: it holds a Stack or an event above MT_FUSED_EVENT_MAX. */
#define MT_FUSED_DECLINED 1

/* Forgets all of the frame before. */
void mt_fused_plan_begin(struct mt_fused_plan *plan, const struct mt_event *events, size_t n);

/*
 * Plans one block. Sequences go to plan->seqs, up to plan->out.seq; literals to
 * `lit`, up to plan->out.lit, with room for MT_FUSED_BLOCK_TARGET,
 * MT_FUSED_EVENT_MAX and MT_FUSED_LIT_SLACK bytes. 0, MT_FUSED_DECLINED, or the
 * negative error of the serializer.
 */
int mt_fused_plan_block(struct mt_fused_plan *plan, bool cpu_has_bits, uint8_t *lit);

/* Plans plan->next byte by byte; plan->pos moves on. Returns as mt_fused_plan_block() does. */
int mt_fused_plan_slow(struct mt_fused_plan *plan, uint32_t shape);

#endif
