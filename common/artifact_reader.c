/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <zstd_errors.h>

#include "common/artifact_reader_internal.h"
#include "common/format.h"

enum {
	/* Frames of our writers fit in one piece; larger ones are streamed. */
	CONTENT_ROOM = 8 << 20,
	INPUT_PIECE = 1 << 20,
	WHOLE_INPUT = 8 << 20,
	CREW_FILE = 1 << 20, /* smaller files are read before threads have started */
};

/*
 * How many events of the frame have not been given, by its hint, which has to
 * be one that lands: a damaged length is as good as none.
 */
static uint64_t missing_events(struct mt_artifact_reader *r)
{
	uint64_t given = r->state == IN_FRAME ? r->in_frame : 0;

	if (mt_hint_walk_lands(&r->hints, &r->src, r->frame.start) != 1)
		return MT_DIAG_UNKNOWN;
	return r->hints.hint.events > given ? r->hints.hint.events - given : 0;
}

static int fail(struct mt_artifact_reader *r, int err, const char *what)
{
	uint64_t frame = r->totals.frames - (r->state == IN_FRAME);
	uint64_t missing = err == -EBADMSG ? missing_events(r) : 0;

	r->state = FAILED;
	if (err == -EBADMSG) {
		mt_diag_set(&r->diag, MT_DIAG_DAMAGED, frame, r->frame.start, "%s", what);
		r->diag.missing = missing;
	} else {
		mt_diag_set(&r->diag, MT_DIAG_SYSTEM, frame, r->frame.start, "%s: %s", what,
			    strerror(-err));
	}
	return err;
}

static void note_cut(struct mt_artifact_reader *r, const char *why)
{
	uint64_t frame = r->totals.frames - (r->state == IN_FRAME);

	mt_diag_set(&r->diag, MT_DIAG_CUT, frame, r->frame.start, "%s", why);
	r->state = AT_END;
}

/* At the head of a frame: 1 if by its hint it holds nothing looked for, and was stepped over. */
static int pass_frame(struct mt_artifact_reader *r)
{
	int ret = mt_hint_walk_passes(&r->hints, &r->src, r->at);

	if (ret != 1)
		return ret;
	r->totals.frames++;
	r->totals.passed_frames++;
	r->at += r->hints.hint.frame_len;
	return 1;
}

static void observe(struct mt_artifact_reader *r)
{
	if (r->observer)
		r->observer(r->observer_data, &r->frame);
}

static void enter_frame(struct mt_artifact_reader *r)
{
	r->state = IN_FRAME;
	r->totals.frames++;
	r->input_at = r->frame.start;
	r->input_done = false;
	r->content.len = 0;
	r->content_at = 0;
	r->in_frame = 0;
	r->hinted = mt_hint_walk_has(&r->hints, r->frame.start);
	r->seen = (struct mt_frame_hint){ .frame_len = r->frame.end - r->frame.start };
	r->unknown_in_frame = false;
}

/* At the head of a frame: 1 if the crew has it; else it is read here. */
static int take_from_crew(struct mt_artifact_reader *r)
{
	int ret = r->threads ? mt_artifact_source_is_data(&r->src, r->at) : 0;

	if (ret != 1)
		return ret;
	if (!r->crew &&
	    mt_frame_crew_new(r->src.fd, r->src.size, r->threads, &r->hints, &r->crew)) {
		r->threads = 0; /* no threads, no memory: it goes without */
		return 0;
	}
	r->ready = mt_frame_crew_take(r->crew, r->at, &r->hints);
	if (!r->ready)
		return 0;
	r->frame = r->ready->extent;
	r->at = r->frame.end;
	enter_frame(r);
	r->input_done = true;
	return 1;
}

static int begin_data_frame(struct mt_artifact_reader *r)
{
	size_t zret = ZSTD_DCtx_reset(r->dctx, ZSTD_reset_session_only);

	int ret;

	if (ZSTD_isError(zret))
		return fail(r, -ENOMEM, "zstd");
	enter_frame(r);
	ret = mt_hint_walk_checks(&r->hints, &r->src, &r->frame);
	if (ret < 0)
		return fail(r, ret, "reading failed");
	return ret ? 0 : fail(r, -EBADMSG, "its bytes are not those that its checksum is of");
}

/* At the head of a frame: takes metadata, enters a data frame, or ends. */
static int next_frame(struct mt_artifact_reader *r)
{
	const char *why = "";
	uint64_t other = r->at;
	int ret;

	ret = pass_frame(r);
	if (!ret)
		ret = take_from_crew(r);
	if (ret)
		return ret < 0 ? fail(r, ret, "reading failed") : 0;
	ret = mt_artifact_source_frame(&r->src, r->at, &r->frame, &why);
	if (ret == 0) {
		r->state = AT_END;
		if (!r->totals.frames && !r->totals.skippable)
			note_cut(r, "the file is empty");
		return 0;
	}
	if (ret < 0) {
		r->frame.end = r->frame.start;
		return fail(r, ret, ret == -EBADMSG ? why : "reading failed");
	}
	if (r->frame.cut) {
		ret = mt_artifact_source_find_frame(&r->src, &other);
		if (ret < 0)
			return fail(r, ret, "reading failed");
		if (ret) {
			r->frame.end = other;
			return fail(r, -EBADMSG, "a length in the frame is damaged");
		}
	}
	r->at = r->frame.end;
	if (!mt_frame_is_skippable(&r->frame))
		return begin_data_frame(r);
	if (r->frame.cut) {
		note_cut(r, "the file ends inside a skippable frame");
		return 0;
	}
	ret = mt_reader_take_hint(r, &r->frame);
	if (!ret)
		ret = mt_reader_take_meta(r, &r->frame);
	if (ret)
		return fail(r, ret, "reading metadata failed");
	observe(r);
	return 0;
}

/* Makes room behind the content that is not yet decoded. */
static int content_room(struct mt_artifact_reader *r)
{
	size_t left = r->content.len - r->content_at;
	size_t want = CONTENT_ROOM;

	if (left && r->content_at)
		memmove(r->content.data, r->content.data + r->content_at, left);
	r->content.len = left;
	r->content_at = 0;
	/* One event fills it: only then more is needed, up to the longest event there may be. */
	if (left >= CONTENT_ROOM / 2)
		want = MT_EVENT_BYTES_MAX + MT_ZSTD_BLOCK_MAX;
	return want > left ? mt_buf_reserve(&r->content, want - left) : 0;
}

/* Decompresses until the room is full or the frame's bytes are all used. */
static int fill_content(struct mt_artifact_reader *r)
{
	ZSTD_outBuffer out;
	int ret;

	ret = content_room(r);
	if (ret)
		return fail(r, ret, "room for a frame");
	out = (ZSTD_outBuffer){ r->content.data, r->content.cap, r->content.len };
	while (!r->input_done && out.pos < out.size) {
		uint64_t left = r->frame.end - r->input_at;
		ZSTD_inBuffer in = { 0 };
		const uint8_t *p;
		size_t before = out.pos, zret;

		/* A frame that is there as a whole, zstd decompresses without a window of its own.
		 */
		ret = mt_artifact_source_peek(&r->src, r->input_at,
					      left <= WHOLE_INPUT ? (size_t)left : INPUT_PIECE, &p,
					      &in.size);
		if (ret)
			return fail(r, ret, "reading failed");
		in.src = p;
		zret = ZSTD_decompressStream(r->dctx, &out, &in);
		/* It makes its buffers when it has seen how large they are to be. */
		if (ZSTD_getErrorCode(zret) == ZSTD_error_memory_allocation)
			return fail(r, -ENOMEM, "decompressing a frame");
		if (ZSTD_isError(zret))
			return fail(r, -EBADMSG, ZSTD_getErrorName(zret));
		r->input_at += in.pos;
		r->input_done = zret == 0 || (!in.pos && out.pos == before);
		/* Our reading of the headers and zstd's own have to agree. */
		if (r->input_done && !r->frame.cut && (zret || r->input_at != r->frame.end))
			return fail(r, -EBADMSG, "the frame's blocks do not fill it");
	}
	r->content.len = out.pos;
	return 0;
}

/* All of the frame that can be had is decompressed and decoded. */
static int end_frame(struct mt_artifact_reader *r)
{
	if (r->frame.cut) {
		note_cut(r, "the file ends inside the frame");
		return 0;
	}
	observe(r);
	/* What a type that we do not know counts as, its writer knows. */
	if (r->hinted && !r->unknown_in_frame && !mt_frame_hint_equal(&r->hints.hint, &r->seen)) {
		(void)fail(r, -EBADMSG, "the hint before the frame is wrong about it");
		r->diag.missing = 0; /* it was given, all of it */
		return -EBADMSG;
	}
	r->state = BETWEEN;
	return 0;
}

/* Moves the events that are looked for to the front. Returns how many. */
static size_t filter_events(const struct mt_artifact_filter *filter, struct mt_event *events,
			    size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (mt_artifact_filter_wants(filter, &events[i]))
			events[kept++] = events[i];
	return kept;
}

static void count_decoded(struct mt_artifact_reader *r, const struct mt_decoded *decoded)
{
	r->totals.events += decoded->n;
	if (decoded->unknown && !r->totals.unknown)
		memcpy(r->totals.unknown_name, decoded->unknown_name,
		       sizeof(r->totals.unknown_name));
	r->totals.unknown += decoded->unknown;
	r->unknown_in_frame |= decoded->unknown > 0;
}

/* The frame that the crew decoded. Returns its content. */
static const uint8_t *take_ready(struct mt_artifact_reader *r, struct mt_decoded *ret_decoded)
{
	const uint8_t *content = r->ready->content;

	*ret_decoded = r->ready->decoded;
	r->seen = r->ready->seen;
	r->totals.searched_frames += r->ready->searched;
	r->ready = NULL;
	count_decoded(r, ret_decoded);
	return content;
}

/* Decodes what is there; more is decompressed when it ends inside an event. */
static int decode_some(struct mt_artifact_reader *r, struct mt_decoded *ret_decoded)
{
	int ret;

	ret = mt_frame_dec_run(r->dec, r->content.data + r->content_at,
			       r->content.len - r->content_at, ret_decoded);
	if (ret == -EBADMSG)
		return fail(r, ret, ret_decoded->why);
	if (ret == -EAGAIN && r->input_done && !r->frame.cut)
		return fail(r, -EBADMSG, "the frame's content ends inside an event");
	if (ret && ret != -EAGAIN)
		return fail(r, ret, "decoding");
	r->content_at += ret_decoded->consumed;
	count_decoded(r, ret_decoded);
	if (r->hinted)
		mt_frame_hint_add(&r->seen, ret_decoded->events, ret_decoded->n);
	/* Only where nothing came of what is there, more is needed at once. */
	if (ret == -EAGAIN && !ret_decoded->consumed)
		return r->input_done ? end_frame(r) : fill_content(r);
	return 0;
}

static int step_in_frame(struct mt_artifact_reader *r, struct mt_artifact_batch *ret)
{
	struct mt_decoded decoded = { 0 };
	/* There is no content at all before the first frame's. */
	const uint8_t *content = r->content.data ? r->content.data + r->content_at : NULL;
	int err = 0;

	if (r->ready)
		content = take_ready(r, &decoded);
	else if (r->content_at == r->content.len)
		return r->input_done ? end_frame(r) : fill_content(r);
	else
		err = decode_some(r, &decoded);
	ret->events = decoded.events;
	ret->n = err ? 0 : decoded.n;
	ret->frame = r->totals.frames - 1;
	ret->in_frame = r->in_frame;
	ret->offset = r->frame.start;
	ret->cut = r->frame.cut;
	ret->content = content;
	ret->content_len = err || !content ? 0 : decoded.consumed;
	r->in_frame += decoded.n + decoded.unknown;
	if (r->hints.filtered)
		ret->n = filter_events(&r->hints.filter, decoded.events, ret->n);
	return err;
}

int mt_artifact_reader_next(struct mt_artifact_reader *r, struct mt_artifact_batch *ret)
{
	int err = 0;

	*ret = (struct mt_artifact_batch){ 0 };
	if (r->state == FAILED)
		return r->diag.kind == MT_DIAG_DAMAGED ? -EBADMSG : -EIO;
	while (!err && !ret->n && !(r->observer && ret->content_len) && r->state != AT_END)
		err = r->state == BETWEEN ? next_frame(r) : step_in_frame(r, ret);
	return err ? err : ret->n > 0 || (r->observer && ret->content_len);
}

void mt_artifact_reader_observe(struct mt_artifact_reader *r, mt_artifact_observer *observer,
				void *data)
{
	r->observer = observer;
	r->observer_data = data;
}

bool mt_artifact_reader_skip_damaged(struct mt_artifact_reader *r)
{
	uint64_t next = r->frame.end;
	struct mt_frame_extent e;
	const char *why;

	if (r->state != FAILED || r->diag.kind != MT_DIAG_DAMAGED)
		return false;
	/* Where the headers held, the next frame is where they say; else it is searched. */
	if (next == r->frame.start || mt_artifact_source_frame(&r->src, next, &e, &why) < 0) {
		next = r->frame.start;
		if (mt_artifact_source_find_frame(&r->src, &next) != 1)
			return false;
	}
	/* A data frame that was not entered keeps its number all the same. */
	if (r->diag.frame == r->totals.frames && r->frame.magic == MT_ZSTD_MAGIC)
		r->totals.frames++;
	r->at = next;
	r->state = BETWEEN;
	r->diag = (struct mt_diag){ 0 };
	return true;
}

/* What it has read ahead is no longer what is wanted. */
static void dismiss_crew(struct mt_artifact_reader *r)
{
	mt_frame_crew_free(r->crew);
	r->crew = NULL;
}

void mt_artifact_reader_filter(struct mt_artifact_reader *r,
			       const struct mt_artifact_filter *filter)
{
	dismiss_crew(r);
	r->hints.filtered = true;
	r->hints.filter = *filter;
	r->src.read_ahead = MT_READER_HOP_READ;
}

void mt_artifact_reader_use_hints(struct mt_artifact_reader *r, bool use)
{
	dismiss_crew(r);
	r->hints.use = use;
}

void mt_artifact_reader_use_threads(struct mt_artifact_reader *r, unsigned int n)
{
	cpu_set_t cpus;

	dismiss_crew(r);
	r->threads = n;
	if (n == MT_ARTIFACT_ALL_CORES) {
		r->threads =
			sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (unsigned)CPU_COUNT(&cpus);
		if (r->src.size < CREW_FILE)
			r->threads = 0;
	}
	if (r->threads)
		r->src.read_ahead = MT_READER_HOP_READ;
}
