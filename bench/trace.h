/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap events as programs make them, for the benchmarks of the codec: 4
 * threads, 48 % malloc, 42 % free, 10 % realloc, time ascending by some tens
 * of nanoseconds, few sizes often and many seldom, addresses of an allocator
 * that gives back what was freed last.
 */
#ifndef MT_BENCH_TRACE_H
#define MT_BENCH_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

enum trace_kind {
	TRACE_REAL,
	TRACE_RANDOM_ADDR, /* addresses and stack hashes without any pattern */
	TRACE_STACKS_16,   /* as real, each allocation with one of so many stack hashes */
	TRACE_STACKS_256,
	TRACE_STACKS_4096,
	TRACE_ALL_RANDOM, /* every field of any width */
};

/* n events, the same for the same arguments. Ends the program when out of memory. */
struct mt_event *trace_new(enum trace_kind kind, size_t n);

#endif
