/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/frame_crew.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "common/buf.h"
#include "common/crc32c.h"
#include "common/event_search.h"

enum {
	/*
	 * The scout looks at headers only: a hint and what follows it, or, in a file without
	 * hints, the header of each block. More would be copied for nothing, some 60 times a frame.
	 */
	SCOUT_READ = 256,
	SLOTS_MAX = MT_CREW_THREADS_MAX + 2,
	HUGE_PAGE = 2 << 20,
};

enum slot_state {
	FREE,	 /* the owner's */
	QUEUED,	 /* found by the scout */
	WORKING, /* a worker's */
	DONE,	 /* the owner's again */
};

/*
 * A frame under way, with the memory for it. Everything but `state` belongs to
 * the owner, or, while it is WORKING, to one worker; `state` is under the lock.
 */
struct slot {
	enum slot_state state;
	bool plain; /* DONE: the frame is as writers make them, and decoded */
	bool hinted;
	bool search;
	struct mt_frame_hint hint; /* when it is hinted */
	struct mt_crew_frame frame;
	struct mt_buf content; /* of the frame, when its events may point into it */
	struct mt_frame_dec *dec;
};

/*
 * What a worker has for itself. Its buffers stay in its processor's cache from
 * frame to frame; the content is exchanged with the slot's only when it has to
 * last.
 */
struct worker {
	ZSTD_DCtx *dctx;
	struct mt_buf input;
	struct mt_buf content;
};

struct mt_frame_crew {
	struct mt_artifact_source src; /* the scout's */
	struct mt_hint_walk walk;      /* the scout's */
	uint64_t scout_at;
	bool scout_done;
	bool taken; /* slot `first` has been given to the caller */

	/* A ring: slots first .. first + n - 1 are under way, in the file's order. */
	struct slot slots[SLOTS_MAX];
	unsigned int slots_n, first, n;

	pthread_mutex_t lock;
	pthread_cond_t work;	 /* for workers: something is QUEUED, or stop */
	pthread_cond_t progress; /* for the owner: something is DONE */
	bool stop;
	pthread_t threads[MT_CREW_THREADS_MAX];
	unsigned int threads_n;
};

static struct slot *slot_of(struct mt_frame_crew *crew, unsigned int nth)
{
	return &crew->slots[(crew->first + nth) % crew->slots_n];
}

/*
 * Room for `len` bytes; what was in the buffer is gone. For some MB in huge pages, where there are
 * any: a file that is passed by its hints has one or two frames to read, and most of the time for
 * them would go into page faults.
 */
static int make_room(struct mt_buf *buf, size_t len)
{
	size_t cap = (len + HUGE_PAGE - 1) & ~((size_t)HUGE_PAGE - 1);

	buf->len = 0;
	if (len < HUGE_PAGE || buf->cap >= len)
		return mt_buf_reserve(buf, len);
	mt_buf_fini(buf);
	buf->data = aligned_alloc(HUGE_PAGE, cap);
	if (!buf->data)
		return -ENOMEM;
	buf->cap = cap;
	/* Without them, it is as good, only slower. */
	(void)madvise(buf->data, cap, MADV_HUGEPAGE);
	return 0;
}

/* All of the frame's bytes, or false: then its reading is not for here. */
static bool read_input(struct worker *w, int fd, const struct mt_frame_extent *extent)
{
	size_t len = (size_t)(extent->end - extent->start);

	if (make_room(&w->input, len))
		return false;
	while (w->input.len < len) {
		ssize_t n = pread(fd, w->input.data + w->input.len, len - w->input.len,
				  (off_t)(extent->start + w->input.len));

		if (n > 0)
			w->input.len += (size_t)n;
		else if (n == 0 || errno != EINTR)
			return false;
	}
	return true;
}

/*
 * The content's room. The size in the frame's header is a claim: it says how
 * much to provide, up to the limit, and zstd holds the content to it.
 */
static size_t content_room(const struct worker *w)
{
	unsigned long long size = ZSTD_getFrameContentSize(w->input.data, w->input.len);
	/* Behind the descriptor, 5 bits of the window's logarithm above 10. */
	unsigned int window_log = w->input.len > 5 ? 10u + (w->input.data[5] >> 3) : 0;

	if (size == ZSTD_CONTENTSIZE_ERROR)
		return 0;
	if (size != ZSTD_CONTENTSIZE_UNKNOWN)
		return size <= MT_CREW_CONTENT ? (size_t)size + 1 : 0;
	/* Whether a window is too large, the caller decides. */
	return window_log < MT_FRAME_WINDOW_LOG ? MT_CREW_CONTENT : 0;
}

/* What its checksum is not of, the caller reads, and says so. */
static bool checks(const struct worker *w, const struct slot *s)
{
	return !s->hinted || !s->hint.has_crc || s->hint.frame_len != w->input.len ||
	       mt_crc32c(0, w->input.data, w->input.len) == s->hint.crc;
}

static bool decompress(struct worker *w)
{
	size_t room, got;

	if (ZSTD_findFrameCompressedSize(w->input.data, w->input.len) != w->input.len)
		return false;
	room = content_room(w);
	if (!room || make_room(&w->content, room))
		return false;
	got = ZSTD_decompressDCtx(w->dctx, w->content.data, room, w->input.data, w->input.len);
	if (ZSTD_isError(got))
		return false;
	w->content.len = got;
	return true;
}

/* What the frame holds. The search has held the hint against what it saw: the rest is as it says.
 */
static void set_seen(struct slot *s, bool all_decoded)
{
	struct mt_frame_hint *seen = &s->frame.seen;

	*seen = all_decoded ? (struct mt_frame_hint){ 0 } : s->hint;
	if (all_decoded)
		mt_frame_hint_add(seen, s->frame.decoded.events, s->frame.decoded.n);
	seen->frame_len = s->frame.extent.end - s->frame.extent.start;
}

/* Whether the frame is as writers make them; then it is decoded. */
static bool work_on(struct worker *w, int fd, struct slot *s)
{
	struct mt_decoded *decoded = &s->frame.decoded;
	bool walked = true;
	int ret;

	*decoded = (struct mt_decoded){ 0 };
	s->frame.searched = false;
	if (!s->dec)
		s->dec = mt_frame_dec_new_large();
	if (!w->dctx || !s->dec || !read_input(w, fd, &s->frame.extent) || !checks(w, s) ||
	    !decompress(w))
		return false;
	if (s->search)
		ret = mt_event_search(s->dec, w->content.data, w->content.len,
				      s->hinted ? &s->hint : NULL, decoded, &walked);
	else
		ret = mt_frame_dec_run(s->dec, w->content.data, w->content.len, decoded);
	if (ret || decoded->consumed != w->content.len)
		return false;
	s->frame.searched = !walked;
	s->frame.content = NULL;
	if (walked || decoded->n) {
		struct mt_buf other = s->content;

		s->content = w->content;
		w->content = other;
		s->frame.content = s->content.data;
	}
	if (s->hinted)
		set_seen(s, walked);
	return true;
}

/* Under the lock: the first frame that nobody has begun. */
static struct slot *next_queued(struct mt_frame_crew *crew)
{
	for (unsigned int i = 0; i < crew->n; i++)
		if (slot_of(crew, i)->state == QUEUED)
			return slot_of(crew, i);
	return NULL;
}

static void *work(void *data)
{
	struct mt_frame_crew *crew = data;
	struct worker w = { .dctx = ZSTD_createDCtx() };

	pthread_mutex_lock(&crew->lock);
	for (;;) {
		struct slot *s = next_queued(crew);
		bool plain;

		if (crew->stop)
			break;
		if (!s) {
			pthread_cond_wait(&crew->work, &crew->lock);
			continue;
		}
		s->state = WORKING;
		pthread_mutex_unlock(&crew->lock);
		plain = work_on(&w, crew->src.fd, s);
		pthread_mutex_lock(&crew->lock);
		s->plain = plain;
		s->state = DONE;
		pthread_cond_signal(&crew->progress);
	}
	pthread_mutex_unlock(&crew->lock);
	ZSTD_freeDCtx(w.dctx);
	mt_buf_fini(&w.input);
	mt_buf_fini(&w.content);
	return NULL;
}

/*
 * One step of the scout from frame to frame. 1 when a data frame that is to be
 * decoded was found; 0 when it stepped over something; -1 at the end, and
 * wherever else the caller has to look for himself.
 */
static int scout_step(struct mt_frame_crew *crew, struct mt_frame_extent *ret_extent)
{
	struct mt_artifact_source *src = &crew->src;
	uint64_t at = crew->scout_at;
	const char *why;
	int ret = mt_hint_walk_passes(&crew->walk, src, at);

	if (ret == 1)
		crew->scout_at += crew->walk.hint.frame_len;
	if (ret)
		return ret < 0 ? -1 : 0;
	ret = mt_hint_walk_lands(&crew->walk, src, at);
	if (ret < 0)
		return -1;
	if (ret) {
		*ret_extent = (struct mt_frame_extent){
			.magic = MT_ZSTD_MAGIC,
			.start = at,
			.end = at + crew->walk.hint.frame_len,
			.content_size = UINT64_MAX,
		};
	} else if (mt_artifact_source_frame(src, at, ret_extent, &why) != 1 || ret_extent->cut) {
		return -1;
	}
	crew->scout_at = ret_extent->end;
	if (!mt_frame_is_skippable(ret_extent))
		return 1;
	ret = mt_hint_walk_meet(&crew->walk, src, ret_extent);
	return ret < 0 && ret != -EBADMSG ? -1 : 0;
}

/* Finds frames for all slots that are free. */
static void scout(struct mt_frame_crew *crew)
{
	while (!crew->scout_done && crew->n < crew->slots_n) {
		struct slot *s = slot_of(crew, crew->n);
		int ret = scout_step(crew, &s->frame.extent);

		crew->scout_done = ret < 0;
		if (ret != 1)
			continue;
		s->hinted = mt_hint_walk_has(&crew->walk, s->frame.extent.start);
		s->hint = crew->walk.hint;
		s->search = crew->walk.filtered && crew->walk.filter.search &&
			    !(crew->walk.filter.types & ~MT_EVENT_SEARCHED);
		s->plain = false;
		pthread_mutex_lock(&crew->lock);
		/* A frame that is too large is not worth a worker's time. */
		s->state = s->frame.extent.end - s->frame.extent.start <= MT_CREW_INPUT ? QUEUED
											: DONE;
		crew->n++;
		pthread_cond_signal(&crew->work);
		pthread_mutex_unlock(&crew->lock);
	}
}

static void drop_first(struct mt_frame_crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	slot_of(crew, 0)->state = FREE;
	crew->first = (crew->first + 1) % crew->slots_n;
	crew->n--;
	pthread_mutex_unlock(&crew->lock);
}

/* The caller is somewhere else: throws away what was read ahead and begins there. */
static void restart(struct mt_frame_crew *crew, uint64_t at, const struct mt_hint_walk *hints)
{
	pthread_mutex_lock(&crew->lock);
	for (unsigned int i = 0; i < crew->n; i++)
		if (slot_of(crew, i)->state != WORKING)
			slot_of(crew, i)->state = FREE;
	for (unsigned int i = 0; i < crew->n; i++) {
		while (slot_of(crew, i)->state == WORKING)
			pthread_cond_wait(&crew->progress, &crew->lock);
		slot_of(crew, i)->state = FREE;
	}
	crew->n = 0;
	pthread_mutex_unlock(&crew->lock);
	crew->scout_at = at;
	crew->scout_done = false;
	crew->walk = *hints;
}

const struct mt_crew_frame *mt_frame_crew_take(struct mt_frame_crew *crew, uint64_t at,
					       const struct mt_hint_walk *hints)
{
	struct slot *s;

	if (crew->taken)
		drop_first(crew);
	crew->taken = false;
	if (!crew->n || slot_of(crew, 0)->frame.extent.start != at)
		restart(crew, at, hints);
	scout(crew);
	if (!crew->n || slot_of(crew, 0)->frame.extent.start != at)
		return NULL;
	s = slot_of(crew, 0);
	pthread_mutex_lock(&crew->lock);
	while (s->state != DONE)
		pthread_cond_wait(&crew->progress, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
	crew->taken = true;
	return s->plain ? &s->frame : NULL;
}

/* Signals are for the threads that the program knows of. */
static int start_thread(struct mt_frame_crew *crew)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&crew->threads[crew->threads_n], NULL, work, crew);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	crew->threads_n += !ret;
	return ret;
}

int mt_frame_crew_new(int fd, uint64_t size, unsigned int threads, const struct mt_hint_walk *walk,
		      struct mt_frame_crew **ret_crew)
{
	struct mt_frame_crew *crew = calloc(1, sizeof(*crew));
	int ret;

	if (!crew)
		return -ENOMEM;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		ret = -errno;
		free(crew);
		return ret;
	}
	crew->src = (struct mt_artifact_source){ .fd = fd, .size = size, .read_ahead = SCOUT_READ };
	crew->walk = *walk;
	crew->scout_done = true;
	if (threads > MT_CREW_THREADS_MAX)
		threads = MT_CREW_THREADS_MAX;
	crew->slots_n = threads + 2;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->work, NULL);
	pthread_cond_init(&crew->progress, NULL);
	/* Fewer than wanted are enough; without any, nothing would ever be done. */
	while (crew->threads_n < threads && !start_thread(crew))
		;
	if (!crew->threads_n) {
		mt_frame_crew_free(crew);
		return -EAGAIN;
	}
	*ret_crew = crew;
	return 0;
}

void mt_frame_crew_free(struct mt_frame_crew *crew)
{
	if (!crew)
		return;
	pthread_mutex_lock(&crew->lock);
	crew->stop = true;
	pthread_cond_broadcast(&crew->work);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned int i = 0; i < crew->threads_n; i++)
		pthread_join(crew->threads[i], NULL);
	for (unsigned int i = 0; i < crew->slots_n; i++) {
		mt_buf_fini(&crew->slots[i].content);
		mt_frame_dec_free(crew->slots[i].dec);
	}
	pthread_cond_destroy(&crew->progress);
	pthread_cond_destroy(&crew->work);
	pthread_mutex_destroy(&crew->lock);
	mt_artifact_source_close(&crew->src);
	free(crew);
}
