/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define FIRST_PAIRS_NS UINT64_C(100000)
#define PAIR_TRIES     8

#if defined(__x86_64__)
/*
 * CPUID says whether the counter runs at one rate in all power states; whether the cores agree, the
 * kernel has measured: it takes hpet or acpi_pm when they do not. Unreadable sysfs proves nothing.
 */
static int tsc_is_trusted(void)
{
	char name[32] = "";
	unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
	ssize_t len;
	int fd;

	if (!__get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) || !(edx & (1u << 8)))
		return 0;
	fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		  O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	len = read(fd, name, sizeof(name) - 1);
	close(fd);
	if (len <= 0)
		return 1;
	return strncmp(name, "hpet", 4) != 0 && strncmp(name, "acpi_pm", 7) != 0 &&
	       strncmp(name, "jiffies", 7) != 0 && strncmp(name, "refined-jiffies", 15) != 0;
}
#endif

enum mt_counter mt_clock_detect(void)
{
#if defined(__x86_64__)
	if (tsc_is_trusted())
		return MT_COUNTER_TSC;
#elif defined(__aarch64__)
	return MT_COUNTER_CNTVCT;
#endif
	return MT_COUNTER_MONOTONIC;
}

/* The tightest of a few readings: an interrupt between the two clocks would shift the pair. */
static struct mt_clock_pair take_pair(enum mt_counter counter)
{
	struct mt_clock_pair best = { 0, 0 };
	uint64_t best_width = UINT64_MAX;

	for (int i = 0; i < PAIR_TRIES; i++) {
		uint64_t before = mt_clock_read(counter);
		uint64_t ns = mt_clock_monotonic_ns();
		uint64_t width = mt_clock_read(counter) - before;

		if (width < best_width) {
			best_width = width;
			best.counter = before + width / 2;
			best.ns = ns;
		}
		if (i >= 1 && width < 2 * best_width)
			break;
	}
	if (counter == MT_COUNTER_MONOTONIC)
		best.counter = best.ns;
	return best;
}

static uint64_t slope(const struct mt_clock_pair *a, const struct mt_clock_pair *b)
{
	uint64_t ticks = b->counter - a->counter;
	unsigned __int128 mult;

	if (ticks == 0)
		return UINT64_C(1) << MT_CLOCK_MULT_BITS;
	mult = ((unsigned __int128)(b->ns - a->ns) << MT_CLOCK_MULT_BITS) / ticks;
	/* A counter that nearly stood still for seconds: too small a slope falls nowhere. */
	return mult > UINT64_MAX ? UINT64_MAX : (uint64_t)mult;
}

static void append(struct mt_clock *clock, struct mt_clock_pair pair)
{
	if (clock->count == MT_CLOCK_PAIRS) {
		/* Very old times lose their accuracy, not their order. */
		memmove(&clock->pairs[0], &clock->pairs[MT_CLOCK_PAIRS / 2],
			sizeof(clock->pairs[0]) * (MT_CLOCK_PAIRS / 2));
		clock->count = MT_CLOCK_PAIRS / 2;
	}
	clock->pairs[clock->count++] = pair;
}

int mt_clock_init(struct mt_clock *clock, enum mt_counter counter)
{
	struct mt_clock_pair pair;

	memset(clock, 0, sizeof(*clock));
	if (counter != MT_COUNTER_TSC && counter != MT_COUNTER_CNTVCT &&
	    counter != MT_COUNTER_MONOTONIC)
		return -EINVAL;
	clock->counter = counter;
	append(clock, take_pair(counter));
	do {
		pair = take_pair(counter);
	} while (pair.ns - clock->pairs[0].ns < FIRST_PAIRS_NS);
	append(clock, pair);
	return 0;
}

void mt_clock_sample(struct mt_clock *clock)
{
	struct mt_clock_pair pair = take_pair(clock->counter);
	const struct mt_clock_pair *last = &clock->pairs[clock->count - 1];
	const struct mt_clock_pair *fixed = &clock->pairs[clock->count - 2];

	/* A counter that stood still or ran back (a virtual machine that moved) adds nothing. */
	if (pair.counter <= last->counter || pair.ns <= last->ns)
		return;
	if (last->ns - fixed->ns >= MT_CLOCK_PAIR_NS)
		append(clock, pair);
	else
		clock->pairs[clock->count - 1] = pair;
	clock->piece.len = 0;
}

void mt_clock_seek(struct mt_clock *clock, uint64_t counter)
{
	uint32_t low = 0, high = clock->count - 2; /* the piece that starts at pair `low` */

	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (counter >= clock->pairs[middle].counter)
			low = middle;
		else
			high = middle - 1;
	}
	clock->piece.start = clock->pairs[low].counter;
	clock->piece.ns = clock->pairs[low].ns;
	clock->piece.mult = slope(&clock->pairs[low], &clock->pairs[low + 1]);
	if (counter < clock->piece.start) {
		/* Before the first pair: a piece of its own, which starts where it was asked for.
		 */
		uint64_t before = clock->piece.start - counter;
		unsigned __int128 back =
			((unsigned __int128)before * clock->piece.mult) >> MT_CLOCK_MULT_BITS;

		clock->piece.start = counter;
		clock->piece.len = back > clock->piece.ns ? 1 : before;
		/* Counters may have begun before the clock: time does not go below 0 for them. */
		clock->piece.ns -= back > clock->piece.ns ? clock->piece.ns : (uint64_t)back;
		return;
	}
	if (low == clock->count - 2)
		clock->piece.len = INT64_MAX;
	else
		clock->piece.len = clock->pairs[low + 1].counter - clock->pairs[low].counter;
}

uint64_t mt_clock_counter_at(const struct mt_clock *clock, uint64_t ns)
{
	uint32_t low = 0, high = clock->count - 2;
	const struct mt_clock_pair *a, *b;

	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (ns >= clock->pairs[middle].ns)
			low = middle;
		else
			high = middle - 1;
	}
	a = &clock->pairs[low];
	b = &clock->pairs[low + 1];
	return a->counter +
	       (uint64_t)((__int128)(int64_t)(ns - a->ns) * (int64_t)(b->counter - a->counter) /
			  (int64_t)(b->ns - a->ns));
}

uint64_t mt_clock_ticks(const struct mt_clock *clock, uint64_t ns)
{
	const struct mt_clock_pair *a = &clock->pairs[clock->count - 2];
	const struct mt_clock_pair *b = &clock->pairs[clock->count - 1];

	return (uint64_t)((unsigned __int128)ns * (b->counter - a->counter) / (b->ns - a->ns));
}
