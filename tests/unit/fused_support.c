/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/unit/fused_support.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

uint64_t fused_rnd(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * 0x2545f4914f6cdd1du;
}

static uint32_t below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((fused_rnd(state) >> 32) * n) >> 32);
}

/* Of any bit length with equal probability. */
static uint64_t wide(uint64_t *state)
{
	unsigned int bits = below(state, 65);

	return bits ? fused_rnd(state) >> (64 - bits) : 0;
}

/* A heap in use. */

enum {
	TRACE_THREADS = 4,
	TRACE_CLASSES = 64,
	TRACE_LIVE = 1 << 14 /* blocks that may live at once in a thread */
};

struct block {
	uint64_t addr;
	uint32_t class;
};

struct trace_thread {
	uint64_t top; /* of the arena */
	uint64_t free_blocks[TRACE_CLASSES][256];
	uint32_t free_n[TRACE_CLASSES];
	struct block live[TRACE_LIVE];
	uint32_t live_n;
};

struct heap_trace {
	uint64_t rnd;
	uint64_t now;
	unsigned int sites;
	bool random_addrs;
	uint32_t size_of_class[TRACE_CLASSES];
	struct trace_thread threads[TRACE_THREADS];
};

struct heap_trace *heap_trace_new(unsigned int sites, bool random_addrs, uint64_t seed)
{
	struct heap_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->rnd = seed * 0x9e3779b97f4a7c15u + 1;
	t->now = 5000000000000u + (seed & 0xffff) * 1000000;
	t->sites = sites;
	t->random_addrs = random_addrs;
	/* Small sizes are the most; half of them are multiples of 8. */
	for (unsigned int i = 0; i < TRACE_CLASSES; i++) {
		uint32_t size = 8 + below(&t->rnd, i < 40 ? 250 : i < 60 ? 4000 : 60000);

		t->size_of_class[i] = i % 2 ? size : size & ~7u;
	}
	for (unsigned int i = 0; i < TRACE_THREADS; i++)
		t->threads[i].top = 0x7f3a00000000u + ((uint64_t)i << 26) + 0x8c0;
	return t;
}

void heap_trace_free(struct heap_trace *trace)
{
	free(trace);
}

/* A class, the first ones more often than the last. */
static uint32_t pick_class(uint64_t *state)
{
	uint32_t a = below(state, TRACE_CLASSES), b = below(state, TRACE_CLASSES);
	uint32_t c = below(state, TRACE_CLASSES);

	a = a < b ? a : b;
	return a < c ? a : c;
}

static uint64_t take_block(struct heap_trace *t, struct trace_thread *th, uint32_t class)
{
	uint64_t addr;

	if (t->random_addrs)
		return (fused_rnd(&t->rnd) >> 17) & ~(uint64_t)15;
	if (th->free_n[class])
		return th->free_blocks[class][--th->free_n[class]];
	addr = th->top;
	th->top += (t->size_of_class[class] + 23u) & ~15u;
	return addr;
}

static void give_block(struct trace_thread *th, struct block block)
{
	if (th->free_n[block.class] < 256)
		th->free_blocks[block.class][th->free_n[block.class]++] = block.addr;
}

/* Takes a live block out: mostly a young one. */
static struct block drop_live(struct heap_trace *t, struct trace_thread *th)
{
	uint32_t range = below(&t->rnd, 4) && th->live_n > 32 ? 32 : th->live_n;
	uint32_t i = th->live_n - 1 - below(&t->rnd, range);
	struct block block = th->live[i];

	th->live[i] = th->live[--th->live_n];
	return block;
}

static uint64_t site_hash(struct heap_trace *t, uint32_t class)
{
	uint64_t site;

	if (!t->sites)
		return 0;
	/* A site asks for one size; the sites of a size are not equally frequent. */
	site = below(&t->rnd, 1 + below(&t->rnd, t->sites / 16));
	return (site * TRACE_CLASSES + class % 16 + 1) * 0x9e3779b97f4a7c15u;
}

static void trace_event(struct heap_trace *t, struct mt_event *e)
{
	uint32_t thread = below(&t->rnd, TRACE_THREADS), what = below(&t->rnd, 100);
	struct trace_thread *th = &t->threads[thread];
	uint32_t class = pick_class(&t->rnd);
	struct block block;

	*e = (struct mt_event){ .pid = 48213, .tid = (int32_t)(48213 + thread) };
	t->now += 20 + below(&t->rnd, 200);
	e->timestamp_ns = t->now;
	if (th->live_n < 4 || (what < 48 && th->live_n < TRACE_LIVE)) {
		e->type = MT_EVENT_MALLOC;
	} else if (what < 90) {
		block = drop_live(t, th);
		e->type = MT_EVENT_FREE;
		e->addr = block.addr;
		give_block(th, block);
		return;
	} else {
		block = drop_live(t, th);
		e->type = MT_EVENT_REALLOC;
		e->flags = MT_EVENT_HAS_OLD;
		e->aux = block.addr;
		give_block(th, block);
	}
	e->size = t->size_of_class[class];
	e->stack_hash = site_hash(t, class);
	e->addr = take_block(t, th, class);
	th->live[th->live_n++] = (struct block){ e->addr, class };
}

void heap_trace_fill(struct heap_trace *trace, struct mt_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		trace_event(trace, &events[i]);
}

void random_fill(uint64_t *state, struct mt_event *events, size_t n)
{
	static const uint8_t types[] = { MT_EVENT_MALLOC, MT_EVENT_CALLOC, MT_EVENT_ALIGNED_ALLOC,
					 MT_EVENT_REALLOC, MT_EVENT_FREE };

	for (size_t i = 0; i < n; i++) {
		struct mt_event *e = &events[i];

		*e = (struct mt_event){ .type = types[below(state, sizeof(types))] };
		e->pid = (int32_t)(fused_rnd(state) >> 33);
		e->tid = (int32_t)(fused_rnd(state) >> 33);
		e->timestamp_ns = fused_rnd(state);
		e->addr = fused_rnd(state);
		if (e->type == MT_EVENT_FREE)
			continue;
		e->size = fused_rnd(state);
		if (below(state, 2))
			e->stack_hash = fused_rnd(state);
		if (e->type == MT_EVENT_REALLOC && below(state, 2)) {
			e->flags = MT_EVENT_HAS_OLD;
			e->aux = fused_rnd(state);
		}
	}
}

/* Streams of all kinds. */

enum { MAPPINGS = 16, PATHS = 20000, POOL = 12 };

struct hostile_store {
	uint64_t rnd;
	struct mt_mapping mappings[MAPPINGS];
	struct mt_stack stack;
	uint64_t words[40];
	char paths[PATHS];
	uint64_t pool[POOL]; /* numbers that fields may take */
	uint32_t threads;
	uint32_t period; /* 0: not periodic */
	uint32_t keep;	 /* of 16: how often a field stays as in the event before */
	uint32_t step;	 /* of 16: how often it only grows a little */
	uint32_t types;	 /* how many types occur */
	uint8_t type[MT_EVENT_TYPES];
};

struct hostile_store *hostile_store_new(uint64_t seed)
{
	struct hostile_store *s = calloc(1, sizeof(*s));

	if (s)
		s->rnd = seed * 0x9e3779b97f4a7c15u + 1;
	return s;
}

void hostile_store_free(struct hostile_store *store)
{
	free(store);
}

static void fill_mappings(struct hostile_store *s)
{
	/* Most are short, some longer than an event that the writer takes by itself. */
	uint32_t longest = below(&s->rnd, 8) ? 300 : below(&s->rnd, 8) ? 5000 : PATHS;
	bool clean = below(&s->rnd, 2);

	for (uint32_t i = 0; i < longest; i++)
		s->paths[i] = (char)(clean ? 'a' + below(&s->rnd, 4) : below(&s->rnd, 256));
	for (unsigned int i = 0; i < MAPPINGS; i++) {
		uint32_t from = below(&s->rnd, 2) ? 0 : below(&s->rnd, longest);

		s->mappings[i] = (struct mt_mapping){
			.dev = wide(&s->rnd),
			.ino = wide(&s->rnd),
			.file_offset = wide(&s->rnd),
			.len = wide(&s->rnd),
			.path = s->paths + from,
			.path_len = below(&s->rnd, longest - from + 1),
		};
	}
}

static void choose_character(struct hostile_store *s, bool stacks)
{
	bool cold = below(&s->rnd, 3) == 0;

	for (unsigned int i = 0; i < POOL; i++)
		s->pool[i] = wide(&s->rnd);
	s->threads = 1 + (below(&s->rnd, 4) ? below(&s->rnd, 6) : (uint32_t)wide(&s->rnd) % 50000);
	s->period = below(&s->rnd, 3) ? 0 : 1 + below(&s->rnd, 40);
	s->keep = below(&s->rnd, 17);
	s->step = below(&s->rnd, 17);
	s->types = 1 + below(&s->rnd, 8);
	for (unsigned int i = 0; i < s->types; i++) {
		static const uint8_t hot[] = { MT_EVENT_MALLOC,	 MT_EVENT_CALLOC,
					       MT_EVENT_REALLOC, MT_EVENT_ALIGNED_ALLOC,
					       MT_EVENT_FREE,	 MT_EVENT_EXEC,
					       MT_EVENT_EXIT,	 MT_EVENT_MMAP,
					       MT_EVENT_MUNMAP,	 MT_EVENT_BRK };

		s->type[i] = hot[below(&s->rnd, sizeof(hot))];
		if (cold)
			s->type[i] = (uint8_t)(1 + below(&s->rnd, MT_EVENT_TYPES - 1));
		if (s->type[i] == MT_EVENT_STACK && !stacks)
			s->type[i] = MT_EVENT_MAPPING;
	}
	fill_mappings(s);
	for (unsigned int i = 0; i < 40; i++)
		s->words[i] = wide(&s->rnd);
	s->stack = (struct mt_stack){ .hash = wide(&s->rnd),
				      .sp = wide(&s->rnd),
				      .regs = s->words,
				      .regs_len = below(&s->rnd, 40),
				      .bytes = (const uint8_t *)s->paths,
				      .bytes_len = below(&s->rnd, 300),
				      .fp_chain = s->words,
				      .fp_chain_len = below(&s->rnd, 40) };
}

static uint64_t next_number(struct hostile_store *s, uint64_t before)
{
	if (below(&s->rnd, 16) < s->keep)
		return before;
	if (below(&s->rnd, 16) < s->step)
		return before + below(&s->rnd, 300);
	if (below(&s->rnd, 2))
		return s->pool[below(&s->rnd, POOL)];
	return wide(&s->rnd);
}

static int32_t thread_number(struct hostile_store *s, uint32_t i)
{
	/* A spread over all widths and both signs. */
	return (int32_t)(s->pool[i % POOL] + (i / POOL) * 7919u) >> (i % 5 * 7);
}

static void hostile_event(struct hostile_store *s, const struct mt_event *before,
			  struct mt_event *e)
{
	*e = (struct mt_event){ .type = s->type[below(&s->rnd, s->types)] };
	e->pid = thread_number(s, below(&s->rnd, s->threads) / 3);
	e->tid = thread_number(s, below(&s->rnd, s->threads));
	e->timestamp_ns = next_number(s, before->timestamp_ns);
	e->addr = next_number(s, before->addr);
	/* Also where the type has no such field: it must not matter. */
	e->size = next_number(s, before->size);
	e->aux = next_number(s, before->aux);
	e->stack_hash = below(&s->rnd, 4) ? next_number(s, before->stack_hash) : 0;
	e->member = (int32_t)next_number(s, (uint64_t)before->member);
	e->flags = (uint8_t)(below(&s->rnd, 2) * MT_EVENT_HAS_OLD);
	if (e->type == MT_EVENT_MAPPING)
		e->mapping = &s->mappings[below(&s->rnd, MAPPINGS)];
	else if (e->type == MT_EVENT_STACK)
		e->stack = &s->stack;
}

void hostile_fill(struct hostile_store *store, struct mt_event *events, size_t n, bool stacks)
{
	static const struct mt_event first;

	choose_character(store, stacks);
	for (size_t i = 0; i < n; i++) {
		hostile_event(store, i ? &events[i - 1] : &first, &events[i]);
		/* Periodic: now and then something else comes. */
		if (store->period && i >= store->period && below(&store->rnd, 64))
			events[i] = events[i - store->period];
	}
}

/* The check. */

struct fused_checker {
	struct mt_frame_enc *oracle;
	struct mt_frame_fused *fused;
	struct mt_frame_fused *plain;
	uint8_t *content;
	size_t content_cap;
};

struct fused_checker *fused_checker_new(void)
{
	struct fused_checker *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (mt_frame_enc_new(MT_FRAME_LEVEL_DEFAULT, &c->oracle) ||
	    mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &c->fused) ||
	    mt_frame_fused_new(MT_FRAME_LEVEL_DEFAULT, &c->plain)) {
		fused_checker_free(c);
		return NULL;
	}
	mt_frame_fused_allow_cpu(c->plain, false);
	return c;
}

void fused_checker_free(struct fused_checker *c)
{
	if (!c)
		return;
	mt_frame_enc_free(c->oracle);
	mt_frame_fused_free(c->fused);
	mt_frame_fused_free(c->plain);
	free(c->content);
	free(c);
}

bool fused_checker_chooses(struct fused_checker *c)
{
	return mt_frame_fused_allow_cpu(c->fused, true);
}

const struct mt_frame_fused_stats *fused_checker_stats(const struct fused_checker *c)
{
	return mt_frame_fused_stats(c->fused);
}

const char *fused_check(struct fused_checker *c, const struct mt_event *events, size_t n)
{
	const uint8_t *want, *frame, *again;
	size_t want_len, frame_len, again_len, got;
	int ret, want_ret;

	want_ret = mt_frame_enc_serialize(c->oracle, events, n, &want, &want_len);
	ret = mt_frame_fused_frame(c->fused, events, n, &frame, &frame_len);
	if (ret != want_ret)
		return "the serializer and the writer return different results";
	if (ret)
		return NULL;
	ret = mt_frame_fused_frame(c->plain, events, n, &again, &again_len);
	if (ret || again_len != frame_len || memcmp(again, frame, frame_len))
		return "the code for all processors makes another frame";
	if (ZSTD_getFrameContentSize(frame, frame_len) != want_len)
		return "the content size in the frame's head is wrong";
	if (c->content_cap < want_len + 1) {
		free(c->content);
		c->content = malloc(want_len + 1);
		c->content_cap = c->content ? want_len + 1 : 0;
		if (!c->content)
			return "out of memory";
	}
	got = ZSTD_decompress(c->content, want_len + 1, frame, frame_len);
	if (ZSTD_isError(got))
		return ZSTD_getErrorName(got);
	if (got != want_len)
		return "the content has another length than the serializer's";
	if (want_len && memcmp(c->content, want, want_len))
		return "the content is not the serializer's";
	return NULL;
}
