/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads the counter that the segment names. A plain reading may be done early by the processor; the
 * merge repairs that (docs/order.md). With --order=strict the stamp after an allocation waits for
 * the loads before it.
 */
#ifndef MT_PRELOAD_STAMP_H
#define MT_PRELOAD_STAMP_H

#include <stdint.h>

#include "preload/guard.h"

enum mt_stamp_mode {
	MT_STAMP_COUNTER = 0, /* the processor's counter, unordered */
	MT_STAMP_STRICT,      /* the same, ordered after an allocation */
	MT_STAMP_CLOCK,	      /* clock_gettime */
};

/* Out of line: its frame is not the hooks' to pay for. */
uint64_t mt_stamp_clock_ns(void);

static inline uint64_t mt_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	uint64_t value;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#endif
}

static inline uint64_t mt_counter_ordered(void)
{
#if defined(__x86_64__)
	uint32_t low, high, cpu; /* the builtin would store the last, in a frame made for it */

	__asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(cpu));
	return (uint64_t)high << 32 | low;
#else
	/* The loads are done, then the pipeline is empty: ISB alone waits for no load. */
	__asm__ volatile("dsb ishld\n\tisb" ::: "memory");
	return mt_counter();
#endif
}

/* Before a free, and wherever order does not matter. `mode`: enum mt_stamp_mode. */
static inline uint64_t mt_stamp(uint32_t mode)
{
	return mt_likely(mode != MT_STAMP_CLOCK) ? mt_counter() : mt_stamp_clock_ns();
}

/* After an allocation. */
static inline uint64_t mt_stamp_after(uint32_t mode)
{
	if (mt_likely(mode == MT_STAMP_COUNTER))
		return mt_counter();
	return mt_likely(mode == MT_STAMP_STRICT) ? mt_counter_ordered() : mt_stamp_clock_ns();
}

#endif
