/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads the counter that the segment names. A plain reading may be done early by the processor; the
 * merge repairs that (docs/order.md). With --order=strict the stamp after an allocation waits for
 * the loads before it.
 */
#ifndef MT_PRELOAD_STAMP_H
#define MT_PRELOAD_STAMP_H

#include <stdint.h>
#include <time.h>

#include "preload/guard.h"
#include "preload/image.h"

enum mt_stamp_mode {
	MT_STAMP_COUNTER = 0, /* the processor's counter, unordered */
	MT_STAMP_STRICT,      /* the same, ordered after an allocation */
	MT_STAMP_CLOCK,	      /* clock_gettime */
};

static inline uint64_t mt_stamp_clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

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
	unsigned int cpu;

	return __builtin_ia32_rdtscp(&cpu);
#else
	/* The loads are done, then the pipeline is empty: ISB alone waits for no load. */
	__asm__ volatile("dsb ishld\n\tisb" ::: "memory");
	return mt_counter();
#endif
}

/* Before a free, and wherever order does not matter. */
static inline uint64_t mt_stamp(void)
{
	return mt_likely(mt_image.stamp_mode != MT_STAMP_CLOCK) ? mt_counter()
								: mt_stamp_clock_ns();
}

/* After an allocation. */
static inline uint64_t mt_stamp_after(void)
{
	if (mt_likely(mt_image.stamp_mode == MT_STAMP_COUNTER))
		return mt_counter();
	return mt_image.stamp_mode == MT_STAMP_STRICT ? mt_counter_ordered() : mt_stamp_clock_ns();
}

#endif
