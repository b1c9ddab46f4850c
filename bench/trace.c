/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench/trace.h"

#include <stdlib.h>

#include "bench/harness.h"

enum { THREADS = 4, LIVE = 1 << 14, CLASSES = 24 };

struct trace {
	uint64_t seed;
	uint64_t now_ns;
	uint64_t top; /* where fresh memory begins */
	size_t live_n;
	struct {
		uint64_t addr;
		uint64_t class;
	} live[LIVE];
	uint64_t freed[CLASSES]; /* the last block freed of each class, 0 if it was taken again */
};

static uint64_t next(struct trace *t)
{
	uint64_t z = (t->seed += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Small classes often: the lower of two draws, twice. */
static uint64_t draw_class(struct trace *t)
{
	uint64_t a = next(t) % CLASSES, b = next(t) % CLASSES, c = next(t) % CLASSES;

	a = a < b ? a : b;
	return a < c ? a : c;
}

static uint64_t class_bytes(uint64_t class)
{
	return class < 16 ? (class + 1) * 16 : 256ull << (class - 15);
}

static uint64_t take(struct trace *t, uint64_t class)
{
	uint64_t addr = t->freed[class];

	if (addr) {
		t->freed[class] = 0;
		return addr;
	}
	addr = t->top;
	t->top += class_bytes(class) + 16;
	return addr;
}

static void allocate(struct trace *t, struct mt_event *e)
{
	uint64_t class = draw_class(t);

	e->addr = take(t, class);
	/* Most callers ask for one size of a class again and again. */
	e->size = next(t) % 8 ? class_bytes(class) - class % 8 : class_bytes(class) - next(t) % 16;
	if (t->live_n == LIVE)
		return;
	t->live[t->live_n].addr = e->addr;
	t->live[t->live_n++].class = class;
}

/* Young blocks die first. */
static uint64_t release(struct trace *t)
{
	size_t back = next(t) % 8 ? next(t) % 16 : next(t) % LIVE;
	size_t i = t->live_n - 1 - back % t->live_n;
	uint64_t addr = t->live[i].addr;

	t->freed[t->live[i].class] = addr;
	t->live[i] = t->live[--t->live_n];
	return addr;
}

static void heap_event(struct trace *t, struct mt_event *e)
{
	uint64_t what = next(t) % 100;

	t->now_ns += 20 + next(t) % 200;
	*e = (struct mt_event){ .timestamp_ns = t->now_ns, .pid = 104711 };
	e->tid = (int32_t)(104711 + next(t) % THREADS);
	if (what < 42 && t->live_n) {
		e->type = MT_EVENT_FREE;
		e->addr = release(t);
	} else if (what < 52 && t->live_n) {
		e->type = MT_EVENT_REALLOC;
		e->flags = MT_EVENT_HAS_OLD;
		e->aux = release(t);
		allocate(t, e);
	} else {
		e->type = MT_EVENT_MALLOC;
		allocate(t, e);
	}
}

static void wide(struct trace *t, uint64_t *value)
{
	*value = next(t) >> next(t) % 64;
}

static void randomise(struct trace *t, enum trace_kind kind, struct mt_event *e)
{
	static const uint64_t sites[] = {
		[TRACE_STACKS_16] = 16, [TRACE_STACKS_256] = 256, [TRACE_STACKS_4096] = 4096
	};

	if (kind == TRACE_ALL_RANDOM) {
		wide(t, &e->timestamp_ns);
		wide(t, &e->addr);
		wide(t, &e->size);
		wide(t, &e->stack_hash);
		e->pid = (int32_t)(next(t) >> (33 + next(t) % 31));
		e->tid = (int32_t)(next(t) >> (33 + next(t) % 31));
		e->type = (uint8_t)(MT_EVENT_MALLOC + next(t) % 5);
		if (e->type == MT_EVENT_REALLOC)
			wide(t, &e->aux);
		return;
	}
	if (kind == TRACE_RANDOM_ADDR) {
		e->addr = 0x7f0000000000u | (next(t) & 0xfffffffff0u);
		e->aux = e->aux ? 0x7f0000000000u | (next(t) & 0xfffffffff0u) : 0;
	} else if (kind != TRACE_REAL && e->type != MT_EVENT_FREE) {
		uint64_t site = next(t) % sites[kind];

		e->stack_hash = (site + 1) * 0x9e3779b97f4a7c15u;
	}
}

struct mt_event *trace_new(enum trace_kind kind, size_t n)
{
	struct mt_event *events = malloc(n * sizeof(*events));
	struct trace *t = calloc(1, sizeof(*t));

	bench_require(events && t, "memory for a trace");
	t->seed = 1;
	t->now_ns = 5000000000000u;
	t->top = 0x5581a0c4e2a0u;
	for (size_t i = 0; i < n; i++) {
		heap_event(t, &events[i]);
		randomise(t, kind, &events[i]);
	}
	free(t);
	return events;
}
