/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Holds the two frame writers together: bytes are taken as a program that makes
 * events, and what the fused writer makes of them, decompressed, has to be what
 * the serializer makes. For libFuzzer: `make check-fuzz`.
 *
 * An event is a type, and two bits for each field: as in the event before, a
 * little more than there, the next one or eight bytes of the input. So a short
 * input reaches what matters, equal fields and changes of width.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fused_support.h"

/* libFuzzer's own name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENTS = 4096 };

struct input {
	const uint8_t *p;
	size_t left;
};

static uint64_t take(struct input *in, size_t bytes)
{
	uint64_t v = 0;

	if (bytes > in->left)
		bytes = in->left;
	memcpy(&v, in->p, bytes);
	in->p += bytes;
	in->left -= bytes;
	return v;
}

static uint64_t take_field(struct input *in, uint64_t before, unsigned int how)
{
	switch (how & 3) {
	case 0:
		return before;
	case 1:
		return before + take(in, 1);
	case 2:
		return take(in, 1);
	default:
		return take(in, 8);
	}
}

static void take_event(struct input *in, const struct mt_event *before, struct mt_event *e,
		       struct mt_mapping *mapping)
{
	static const uint8_t bytes[1];
	static const struct mt_stack stack = { .hash = 1, .bytes = bytes, .bytes_len = 1 };
	unsigned int type = (unsigned int)take(in, 1), how = (unsigned int)take(in, 2);

	*e = *before;
	e->type = type & 15;
	e->flags = (uint8_t)(type >> 4 & MT_EVENT_HAS_OLD);
	e->timestamp_ns = take_field(in, before->timestamp_ns, how);
	e->addr = take_field(in, before->addr, how >> 2);
	e->size = take_field(in, before->size, how >> 4);
	e->stack_hash = take_field(in, before->stack_hash, how >> 6);
	/* Not an address of this run, so that an input always gives the same events. */
	e->aux = before->type == MT_EVENT_MAPPING || before->type == MT_EVENT_STACK ? 0
										    : before->aux;
	e->aux = take_field(in, e->aux, how >> 8);
	e->pid = (int32_t)take_field(in, (uint64_t)before->pid, how >> 10);
	e->tid = (int32_t)take_field(in, (uint64_t)before->tid, how >> 12);
	e->member = (int32_t)take_field(in, (uint64_t)before->member, how >> 14);
	if (e->type == MT_EVENT_STACK)
		e->stack = &stack;
	if (e->type != MT_EVENT_MAPPING)
		return;
	*mapping = (struct mt_mapping){ e->size, e->addr, e->stack_hash, e->aux, NULL, 0 };
	mapping->path_len = (uint32_t)take(in, 1);
	if (mapping->path_len > in->left)
		mapping->path_len = (uint32_t)in->left;
	mapping->path = (const char *)in->p;
	in->p += mapping->path_len;
	in->left -= mapping->path_len;
	e->mapping = mapping;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mt_event events[EVENTS], before;
	static struct mt_mapping mappings[EVENTS];
	static struct fused_checker *checker;
	struct input in = { data, size };
	const char *wrong;
	size_t n = 0;

	if (!checker)
		checker = fused_checker_new();
	if (!checker)
		return 0;
	memset(&before, 0, sizeof(before));
	while (in.left && n < EVENTS) {
		/* A leading byte above 240 repeats what came: runs that a mutation can reach. */
		size_t again = *in.p > 240 ? (size_t)take(&in, 1) - 240 : 0;

		for (size_t i = 0; i < again * 4 && n > again && n < EVENTS; i++, n++)
			events[n] = events[n - again];
		if (n == EVENTS)
			break;
		take_event(&in, n ? &events[n - 1] : &before, &events[n], &mappings[n]);
		n++;
	}
	wrong = fused_check(checker, events, n);
	if (wrong) {
		fprintf(stderr, "fuzz_fused: %zu events: %s\n", n, wrong);
		abort();
	}
	return 0;
}
