/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The counter that stamps are read from, and its conversion to CLOCK_MONOTONIC nanoseconds.
 *
 * Pairs of readings (counter, clock) are taken through the run; between two pairs the conversion is
 * linear, beyond the newest pair it goes on with the last slope. All pieces meet and none falls, so
 * a larger counter value never gives an earlier time while no pair is added; the newest pair may
 * move what was extrapolated by some tens of nanoseconds, which the writer of events clamps away.
 *
 * Owner and threads: a clock belongs to one thread. mt_clock_detect() is for any.
 */
#ifndef MT_COMMON_CLOCK_H
#define MT_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "common/chunk.h"

#define MT_CLOCK_PAIRS	   1024u
#define MT_CLOCK_PAIR_NS   UINT64_C(20000000) /* distance of pairs that are kept */
#define MT_CLOCK_MULT_BITS 32

struct mt_clock_pair {
	uint64_t counter;
	uint64_t ns;
};

/* One linear piece: valid from start on, for len ticks (the newest piece: without end). */
struct mt_clock_piece {
	uint64_t start;
	uint64_t len;
	uint64_t ns;
	uint64_t mult; /* nanoseconds per tick, 32 bits behind the point */
};

struct mt_clock {
	enum mt_counter counter;
	uint32_t count; /* pairs in use; the last one moves until it is far enough from the one
			   before */
	struct mt_clock_piece piece; /* the one used last */
	struct mt_clock_pair pairs[MT_CLOCK_PAIRS];
};

/* The best counter of this machine: the CPU's where it is invariant and the kernel trusts it. */
enum mt_counter mt_clock_detect(void);

/* Takes the first two pairs, 100 us apart. Returns 0, or -EINVAL for a counter not known here. */
int mt_clock_init(struct mt_clock *clock, enum mt_counter counter);

/* Takes a pair now. Cheap: to be called every round. */
void mt_clock_sample(struct mt_clock *clock);

/* Finds the piece for a counter value; mt_clock_ns() calls it when the last one does not fit. */
void mt_clock_seek(struct mt_clock *clock, uint64_t counter);

/* CLOCK_MONOTONIC nanoseconds of a counter value. */
static inline uint64_t mt_clock_ns(struct mt_clock *clock, uint64_t counter)
{
	if (__builtin_expect(counter - clock->piece.start >= clock->piece.len, 0))
		mt_clock_seek(clock, counter);
	return clock->piece.ns +
	       (uint64_t)(((unsigned __int128)(counter - clock->piece.start) * clock->piece.mult) >>
			  MT_CLOCK_MULT_BITS);
}

/* The counter value of a time: the inverse of mt_clock_ns(). */
uint64_t mt_clock_counter_at(const struct mt_clock *clock, uint64_t ns);

/* How many ticks `ns` nanoseconds last. */
uint64_t mt_clock_ticks(const struct mt_clock *clock, uint64_t ns);

static inline uint64_t mt_clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The counter now. Not ordered against other instructions. */
static inline uint64_t mt_clock_read(enum mt_counter counter)
{
#if defined(__x86_64__)
	if (counter == MT_COUNTER_TSC)
		return __rdtsc();
#elif defined(__aarch64__)
	if (counter == MT_COUNTER_CNTVCT) {
		uint64_t value;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
		return value;
	}
#endif
	(void)counter; /* the only one left */
	return mt_clock_monotonic_ns();
}

#endif
