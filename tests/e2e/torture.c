/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libtorture: an allocator that hands blocks from thread to thread as fast as the machine can. What
 * a thread frees goes to its partner through a short ring of plain loads and stores, without a
 * locked instruction: between a free on one side and the allocation of the same block on the other
 * lies one cache line. Only numbered blocks (truth.h) are made so; for all others it is a plain
 * allocator under a lock that gives nothing out twice.
 *
 * Now and then a thread falls asleep in a free or realloc when the block is with the partner
 * already, for longer than memtrack parks a record: who tells of a free too late is found out.
 *
 * It is told (torture_next_free) to bear what no allocator bears: frees of blocks that are not the
 * program's.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/e2e/truth.h"

#define EXPORT __attribute__((visibility("default")))

#define BLOCK	   64u
#define BLOCKS	   (1u << 17)
#define RING	   8u /* short: the partner shall take a block as soon as it is there */
#define STACK	   1024u
#define QUARANTINE 1024u
#define HANDS	   1024u
#define SLEEPS	   128u	       /* frees between two */
#define SLEEP_NS   80000       /* more than a record is parked for */
#define TURNS	   300	       /* looks at an empty ring before the processor is given up */
#define YIELDS	   4	       /* times that it is, for a partner that may not be running */
#define PATIENCE   1000	       /* then so many blocks are taken from elsewhere at once */
#define WAIT_NS	   2000000     /* in quarantine: far more than an early stamp is parked for */
#define PLAIN	   (96u << 20) /* bytes of blocks that are not numbered */

/* One a thread; two are partners. A ring is written by the partner and emptied by the owner. */
struct hand {
	alignas(64) void *ring[RING]; /* NULL: an empty place */
	alignas(64) uint32_t tail;    /* of our own ring */
	uint32_t head;		      /* of the partner's */
	uint32_t given;
	uint32_t impatient; /* blocks to take without waiting for the partner */
	uint32_t stacked, quarantine_head, quarantine_tail;
	void *stack[STACK];
	struct {
		void *block;
		uint64_t since_ns;
	} quarantine[QUARANTINE];
};

static alignas(4096) char blocks[BLOCKS][BLOCK];
static alignas(16) char plain[PLAIN];
static struct hand hands[HANDS];
static uint32_t next_hand, next_block;
static size_t next_plain;

static __thread struct hand *own __attribute__((tls_model("initial-exec")));
static __thread enum torture_free next_free __attribute__((tls_model("initial-exec")));

static bool is_numbered(const void *block)
{
	return (size_t)((const char *)block - &blocks[0][0]) < sizeof(blocks);
}

static struct hand *own_hand(void)
{
	if (__builtin_expect(!own, 0)) {
		uint32_t index = __atomic_fetch_add(&next_hand, 1, __ATOMIC_RELAXED);

		if (index >= HANDS)
			abort();
		own = &hands[index];
	}
	return own;
}

static struct hand *partner_of(const struct hand *hand)
{
	return &hands[(hand - hands) ^ 1];
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Acquire and release are plain moves on x86. */
static inline void *take_from_ring(struct hand *hand)
{
	void **place = &hand->ring[hand->tail % RING];
	void *block = __atomic_load_n(place, __ATOMIC_ACQUIRE);

	if (block) {
		__atomic_store_n(place, NULL, __ATOMIC_RELEASE);
		hand->tail++;
	}
	return block;
}

static void *take_from_quarantine(struct hand *hand)
{
	uint32_t at = hand->quarantine_tail % QUARANTINE;

	if (hand->quarantine_tail == hand->quarantine_head ||
	    now_ns() - hand->quarantine[at].since_ns < WAIT_NS)
		return NULL;
	hand->quarantine_tail++;
	return hand->quarantine[at].block;
}

static void *take_fresh(void)
{
	uint32_t index = __atomic_load_n(&next_block, __ATOMIC_RELAXED);

	if (index < BLOCKS)
		index = __atomic_fetch_add(&next_block, 1, __ATOMIC_RELAXED);
	return index < BLOCKS ? blocks[index] : NULL;
}

/* The ring is empty: the partner may be about to fill it, asleep, or gone. */
static void *wait_for_partner(struct hand *hand)
{
	void *block = NULL;

	if (hand->impatient > 0) {
		hand->impatient--;
		return NULL;
	}
	for (int yields = 0; !block && yields < YIELDS; yields++) {
		for (int turn = 0; !block && turn < TURNS; turn++)
			block = take_from_ring(hand);
		if (!block)
			sched_yield();
	}
	if (!block)
		hand->impatient = PATIENCE;
	return block;
}

static __attribute__((noinline)) void *take_slowly(struct hand *hand)
{
	void *block = take_from_quarantine(hand);

	if (!block && (hand->stacked || __atomic_load_n(&next_block, __ATOMIC_RELAXED) > HANDS))
		block = wait_for_partner(hand);
	if (!block && hand->stacked)
		block = hand->stack[--hand->stacked];
	if (!block)
		block = take_fresh();
	while (!block) { /* all are in use or with others */
		sched_yield();
		block = take_from_ring(hand);
	}
	return block;
}

static inline void *take(void)
{
	struct hand *hand = own_hand();
	void *block = take_from_ring(hand);

	return __builtin_expect(block != NULL, 1) ? block : take_slowly(hand);
}

static void give(void *block)
{
	static const struct timespec pause = { .tv_nsec = SLEEP_NS };
	struct hand *hand = own_hand();
	void **place = &partner_of(hand)->ring[hand->head % RING];

	if (!__atomic_load_n(place, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(place, block, __ATOMIC_RELEASE);
		hand->head++;
		if (++hand->given % SLEEPS == 0)
			nanosleep(&pause, NULL);
	} else if (hand->stacked < STACK) {
		hand->stack[hand->stacked++] = block;
	} /* else it is not used again */
}

static void quarantine(void *block)
{
	struct hand *hand = own_hand();
	uint32_t at = hand->quarantine_head % QUARANTINE;

	if (hand->quarantine_head - hand->quarantine_tail == QUARANTINE)
		return; /* it is not used again */
	hand->quarantine[at].block = block;
	hand->quarantine[at].since_ns = now_ns();
	hand->quarantine_head++;
}

/* Blocks without a number have their size in front. */
static void *plain_alloc(size_t align, size_t size)
{
	size_t at, end;

	if (size > PLAIN)
		return NULL;
	if (align < 16)
		align = 16;
	at = __atomic_load_n(&next_plain, __ATOMIC_RELAXED);
	do {
		end = (at + 16 + align - 1) & ~(align - 1);
		if (end + size > PLAIN)
			return NULL;
	} while (!__atomic_compare_exchange_n(&next_plain, &at, end + size, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*(size_t *)(plain + end - 16) = size;
	return plain + end;
}

static void *alloc(size_t align, size_t size)
{
	void *block = truth_is_marked(size) ? take() : plain_alloc(align, size);

	if (!block)
		errno = ENOMEM;
	return block;
}

extern torture_next_free_fn torture_next_free;
EXPORT void torture_next_free(enum torture_free what)
{
	next_free = what;
}

EXPORT void *malloc(size_t size)
{
	return alloc(16, size);
}

EXPORT void *calloc(size_t count, size_t each)
{
	size_t size;
	void *block;

	if (__builtin_mul_overflow(count, each, &size)) {
		errno = ENOMEM;
		return NULL;
	}
	block = alloc(16, size);
	if (block && is_numbered(block))
		memset(block, 0, BLOCK);
	return block; /* the others are never used twice */
}

EXPORT void free(void *block)
{
	enum torture_free what = next_free;

	next_free = TORTURE_FREE;
	if (what == TORTURE_IGNORE || !is_numbered(block))
		return;
	if (what == TORTURE_QUARANTINE)
		quarantine(block);
	else
		give(block);
}

/* Every other one moves; the old block is with the partner before the call is back. */
EXPORT void *realloc(void *old, size_t size)
{
	void *block;

	if (!old)
		return malloc(size);
	if (is_numbered(old)) {
		if (!truth_is_marked(size)) {
			errno = ENOMEM;
			return NULL;
		}
		if (truth_number(size) % 2)
			return old;
		block = take();
		memcpy(block, old, BLOCK);
		give(old);
		return block;
	}
	block = malloc(size);
	if (block) {
		size_t old_size = ((size_t *)old)[-2];

		memcpy(block, old, old_size < size ? old_size : size);
	}
	return block;
}

EXPORT int posix_memalign(void **ret_block, size_t align, size_t size)
{
	*ret_block = alloc(align, size);
	return *ret_block ? 0 : ENOMEM;
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	return alloc(align, size);
}
