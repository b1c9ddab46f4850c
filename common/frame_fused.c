/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/frame_fused.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/format.h"
#include "common/frame_enc.h"
#include "common/fused_bits.h"
#include "common/fused_cpu.h"
#include "common/fused_fse.h"
#include "common/fused_plan.h"

/*
 * A frame as we write it (RFC 8878, 3.1.1). Integers are little-endian.
 *
 *   frame   | magic 4 | 80 | window 1 | content size 4 | block | block | ...
 *   block   | last 1 bit, kind 2 bits, size 21 bits | ...
 *   packed  | 0c, size of literals 20 bits | literals | count 1-2 | modes 1 | tables | bits |
 *
 * Descriptor 80: the content size stands in 4 bytes, a window follows, no
 * checksum, no dictionary. Literals are raw and written in place while the
 * block is planned, so they are never copied.
 *
 * Tables. A block can describe tables of its own, use the last described, or
 * the ones that every decoder knows. Ours are described for the first blocks
 * of a frame and ever more rarely then (0, 1, 4, 16, ...), from the counts of
 * the block at hand: counts settle fast, and neither counting nor describing
 * is free. A frame that begins with a small block, because it is a small
 * frame, takes those that are known: a description would cost more than it
 * saves.
 */

enum {
	FRAME_HEAD = 10,
	BLOCK_HEAD = 3,
	LITERALS_HEAD = 3,
	SEQUENCES_HEAD = 3, /* count and modes; the count is below 0x7f00 */
	DESCRIBE_SEQS = 256 /* with fewer, the known tables are taken */
};

enum block_kind { BLOCK_RAW = 0, BLOCK_PACKED = 2 };

enum table_mode { MODE_KNOWN = 0, MODE_DESCRIBED = 2, MODE_REPEAT = 3 };

static_assert(MT_FUSED_BLOCK_TARGET + MT_FUSED_EVENT_MAX <= MT_ZSTD_BLOCK_MAX,
	      "a block's content is within the format's limit");
static_assert(MT_FUSED_SEQS_MAX < 0x7f00, "the count of sequences takes at most 2 bytes");

struct mt_frame_fused {
	struct mt_frame_enc *fallback;
	struct mt_buf frame;
	struct mt_frame_fused_stats stats;
	uint64_t literals; /* of the frame */
	uint32_t block;	   /* its number in the frame */
	bool described;	   /* `tables` are what the decoder has */
	bool cpu_has_bits;
	struct mt_fse_tables tables;
	struct mt_fse_tables known;
	struct mt_fused_plan plan;
};

static uint8_t *put_le(uint8_t *p, uint32_t v, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		*p++ = (uint8_t)(v >> 8 * i);
	return p;
}

static void put_block_head(uint8_t *p, bool last, enum block_kind kind, size_t size)
{
	put_le(p, (uint32_t)last | (uint32_t)kind << 1 | (uint32_t)size << 3, BLOCK_HEAD);
}

static bool is_power_of_4(uint32_t v)
{
	return v && !(v & (v - 1)) && (v & 0x55555555u);
}

/* Writes the modes and, if they change, the tables; returns those to code with. */
static const struct mt_fse_tables *put_tables(struct mt_frame_fused *f, size_t n, uint8_t **p)
{
	uint32_t counts[MT_FSE_ROWS];
	bool wanted = !f->described || f->block == 0 || is_power_of_4(f->block);
	enum table_mode mode = f->described ? MODE_REPEAT : MODE_KNOWN;

	if (wanted && n >= DESCRIBE_SEQS)
		mode = MODE_DESCRIBED;
	*(*p)++ = (uint8_t)(mode << 6 | mode << 4 | mode << 2);
	if (mode == MODE_KNOWN)
		return &f->known;
	if (mode == MODE_DESCRIBED) {
		mt_fused_count(f->plan.seqs, n, counts);
		*p = mt_fse_from_counts(&f->tables, counts, *p);
		f->described = true;
	}
	return &f->tables;
}

/* Writes the sequences that were planned; returns the end. */
static uint8_t *put_sequences(struct mt_frame_fused *f, uint8_t *p)
{
	size_t n = (size_t)(f->plan.out.seq - f->plan.seqs);
	const struct mt_fse_tables *tables;

	if (n >= 128)
		*p++ = (uint8_t)((n >> 8) + 128);
	*p++ = (uint8_t)n;
	if (!n)
		return p;
	tables = put_tables(f, n, &p);
	return mt_fused_bits(f->plan.seqs, n, tables, f->cpu_has_bits, p);
}

/* The one block of a frame without events. */
static int put_empty_block(struct mt_frame_fused *f)
{
	int ret = mt_buf_reserve(&f->frame, BLOCK_HEAD);

	if (ret)
		return ret;
	put_block_head(f->frame.data + f->frame.len, true, BLOCK_RAW, 0);
	f->frame.len += BLOCK_HEAD;
	return 0;
}

static int put_block(struct mt_frame_fused *f)
{
	struct mt_fused_plan *plan = &f->plan;
	uint32_t first_pos = plan->pos;
	size_t lits_len, seqs_room;
	uint8_t *start, *p;
	int ret;

	ret = mt_buf_reserve(&f->frame, BLOCK_HEAD + LITERALS_HEAD + MT_FUSED_BLOCK_TARGET +
						MT_FUSED_EVENT_MAX + MT_FUSED_LIT_SLACK);
	if (ret)
		return ret;
	p = f->frame.data + f->frame.len + BLOCK_HEAD + LITERALS_HEAD;
	ret = mt_fused_plan_block(plan, f->cpu_has_bits, p);
	if (ret)
		return ret;
	lits_len = (size_t)(plan->out.lit - p);
	seqs_room = MT_FUSED_BITS_ROOM((size_t)(plan->out.seq - plan->seqs));
	ret = mt_buf_reserve(&f->frame, BLOCK_HEAD + LITERALS_HEAD + lits_len + SEQUENCES_HEAD +
						MT_FSE_HEAD_MAX + seqs_room);
	if (ret)
		return ret;
	start = f->frame.data + f->frame.len;
	p = start + BLOCK_HEAD;
	p = put_le(p, 0xc | (uint32_t)lits_len << 4, LITERALS_HEAD);
	p = put_sequences(f, p + lits_len);
	f->literals += lits_len;
	/* The format demands it; in a frame that is not tiny it is nearly always so. */
	if ((size_t)(p - start) - BLOCK_HEAD >= plan->pos - first_pos)
		return MT_FUSED_DECLINED;
	put_block_head(start, plan->next == plan->n, BLOCK_PACKED,
		       (size_t)(p - start) - BLOCK_HEAD);
	f->frame.len = (size_t)(p - f->frame.data);
	return 0;
}

/*
 * Whether to go on: 0 if so. A frame that is mostly literals gains nothing here; nor does one of a
 * single block that comes out at more than half, since the events it begins with are most of it.
 */
static int judge(const struct mt_frame_fused *f)
{
	bool judged = f->plan.pos >= MT_FUSED_BLOCK_TARGET || f->plan.next == f->plan.n;

	if (f->plan.pos > MT_FRAME_CONTENT_MAX)
		return -EMSGSIZE;
	if (f->block == 0 && f->plan.n && f->plan.next == f->plan.n &&
	    f->frame.len > f->plan.pos / 2)
		return MT_FUSED_DECLINED;
	return judged && f->literals > f->plan.pos / 2 ? MT_FUSED_DECLINED : 0;
}

static int put_frame(struct mt_frame_fused *f, const struct mt_event *events, size_t n)
{
	uint8_t *p;
	int ret;

	f->frame.len = 0;
	f->literals = 0;
	f->described = false;
	mt_fused_plan_begin(&f->plan, events, n);
	ret = mt_buf_reserve(&f->frame, FRAME_HEAD);
	if (ret)
		return ret;
	p = put_le(f->frame.data, MT_ZSTD_MAGIC, 4);
	*p++ = 0x80;
	*p = (MT_FUSED_WINDOW_LOG - 10) << 3;
	f->frame.len = FRAME_HEAD;
	f->block = 0;
	do {
		ret = n ? put_block(f) : put_empty_block(f);
		if (!ret)
			ret = judge(f);
		f->block++;
	} while (!ret && f->plan.next < f->plan.n);
	put_le(f->frame.data + FRAME_HEAD - 4, f->plan.pos, 4);
	f->stats.events_slow += f->plan.slow_events;
	return ret;
}

int mt_frame_fused_frame(struct mt_frame_fused *f, const struct mt_event *events, size_t n,
			 const uint8_t **ret_frame, size_t *ret_len)
{
	int ret;

	if (n > MT_BATCH_EVENTS)
		return -EINVAL;
	ret = put_frame(f, events, n);
	if (ret < 0)
		return ret;
	f->stats.frames++;
	if (ret == MT_FUSED_DECLINED) {
		f->stats.frames_handed_on++;
		return mt_frame_enc_frame(f->fallback, events, n, ret_frame, ret_len);
	}
	*ret_frame = f->frame.data;
	*ret_len = f->frame.len;
	return 0;
}

const struct mt_frame_fused_stats *mt_frame_fused_stats(const struct mt_frame_fused *f)
{
	return &f->stats;
}

bool mt_frame_fused_allow_cpu(struct mt_frame_fused *f, bool allow)
{
	f->cpu_has_bits = allow && mt_fused_cpu_has_bits();
	return f->cpu_has_bits;
}

int mt_frame_fused_new(int level, struct mt_frame_fused **ret_fused)
{
	/* Zeroed: the planner writes and compares bytes it does not use. */
	struct mt_frame_fused *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return -ENOMEM;
	ret = mt_frame_enc_new(level, &f->fallback);
	if (ret) {
		mt_frame_fused_free(f);
		return ret;
	}
	f->plan.serializer = f->fallback;
	mt_fse_predefined(&f->known);
	mt_frame_fused_allow_cpu(f, true);
	*ret_fused = f;
	return 0;
}

void mt_frame_fused_free(struct mt_frame_fused *f)
{
	if (!f)
		return;
	mt_frame_enc_free(f->fallback);
	mt_buf_fini(&f->frame);
	free(f);
}
