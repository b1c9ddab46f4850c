/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/emit.h"

#include <string.h>
#include <time.h>

#include "preload/attach.h"
#include "preload/cover.h"
#include "preload/real.h"
#include "preload/thread.h"

/* Starts of mappings are multiples of a page. */
#define KIND_BITS UINT64_C(4095)

struct mt_wiped mt_wiped __attribute__((aligned(MT_PAGE_BYTES)));
struct mt_image mt_image;
__thread struct mt_thread mt_thread __attribute__((tls_model("initial-exec")));

static_assert(sizeof(struct mt_wiped) == MT_PAGE_BYTES, "the kernel wipes whole pages");

/*
 * libc's own clock: the program, or a library of the user's, may have one of that name that tells
 * another time, or one that stands still.
 */
__attribute__((cold)) uint64_t mt_stamp_clock_ns(void)
{
	int (*libcs)(clockid_t, struct timespec *) = clock_gettime;
	struct timespec now;

	if (mt_likely(mt_objects.clock_gettime != NULL))
		memcpy(&libcs, &mt_objects.clock_gettime, sizeof(libcs));
	(void)libcs(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A session that is over is over for good: later records cost one test. */
static void stop_for_good(void)
{
	mt_store_relaxed(&mt_image.recording, MT_RECORDING_OFF);
	mt_store_relaxed(&mt_wiped.epoch, 0);
}

static void count_lost(const struct mt_thread *thread, enum mt_lost cause)
{
	static const struct mt_writer nobody;
	const struct mt_writer *writer = &thread->writer;

	/* In a child that never claimed slots, what the thread holds is its parent's. */
	if (mt_load_relaxed(&mt_wiped.own) == 0)
		writer = &nobody;
	mt_writer_lost(&mt_image.producer, writer, cause);
}

/* Results of make_ready beside 0 (ready) and MT_TURN_LOST + cause. */
#define NOT_RECORDING MT_TURN_CLOSED

static int make_ready(struct mt_thread *thread)
{
	int result;

	if (mt_load_relaxed(&mt_image.recording) == MT_RECORDING_NEW)
		mt_attach();
	switch (mt_load_acquire(&mt_image.recording)) {
	case MT_RECORDING_ON:
		break;
	case MT_RECORDING_SANDBOX:
		return MT_TURN_LOST + MT_LOST_SANDBOX;
	default:
		return NOT_RECORDING;
	}
	result = mt_thread_adopt(thread);
	if (result != 0)
		return result;
	if (thread->writer.next != thread->writer.end)
		return 0;
	result = mt_writer_turn_over(&mt_image.producer, &thread->writer);
	if (result == MT_TURN_CLOSED)
		stop_for_good();
	return result;
}

bool mt_emit_prepare(struct mt_thread *thread)
{
	if (mt_emit_is_ready(thread))
		return true;
	if (make_ready(thread) == 0 && mt_load_relaxed(&thread->covered) == 0)
		return true;
	return false;
}

__attribute__((noinline, cold)) void mt_emit_slow(struct mt_thread *thread, enum mt_rec_kind kind,
						  uint64_t addr, uint64_t size, bool after)
{
	int result = make_ready(thread);

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (mt_unlikely(mt_load_relaxed(&thread->covered) != 0)) {
		/* A handler has forked meanwhile, and this is the child. */
		mt_cover_end(thread);
		mt_cover_record(thread, kind, addr, size);
		return;
	}
	if (result >= MT_TURN_LOST)
		count_lost(thread, (enum mt_lost)(result - MT_TURN_LOST));
	if (result != 0)
		return;
	mt_writer_put(&thread->writer,
		      after ? mt_stamp_after(thread->stamp_mode) : mt_stamp(thread->stamp_mode),
		      addr, size, kind);
}

void mt_emit_interrupted(const struct mt_thread *thread)
{
	/* Counters are plain sums of relaxed adds by one thread; the one that we interrupted can
	 * at worst be adding too, and then one of two losses is not counted. */
	if (mt_load_relaxed(&mt_image.recording) == MT_RECORDING_ON)
		count_lost(thread, MT_LOST_SIGNAL);
}

void mt_emit_defer(struct mt_thread *thread, enum mt_rec_kind kind, const void *start, uint64_t len)
{
	uint32_t count = mt_load_relaxed(&thread->deferred_count);

	if (count >= MT_DEFERRED_MAX) {
		mt_emit_interrupted(thread);
		return;
	}
	thread->deferred[count].start_kind = (uintptr_t)start | (uint64_t)kind;
	thread->deferred[count].len = len;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mt_store_relaxed(&thread->deferred_count, count + 1);
}

/* What a handler adds behind our copy while we record it is found by the next turn of the loop. */
static void record_deferred(struct mt_thread *thread)
{
	while (mt_load_relaxed(&thread->deferred_count) != 0) {
		struct mt_deferred copy = thread->deferred[0];

		thread->deferred[0] = thread->deferred[1];
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		mt_store_relaxed(&thread->deferred_count,
				 mt_load_relaxed(&thread->deferred_count) - 1);
		mt_emit_before(thread, (enum mt_rec_kind)(copy.start_kind & KIND_BITS),
			       (const void *)(uintptr_t)(copy.start_kind & ~KIND_BITS), copy.len);
	}
}

__attribute__((noinline, cold)) void mt_emit_pending(struct mt_thread *thread, uint64_t value)
{
	do {
		mt_guard_set(thread, MT_GUARD_WRITE);
		if (mt_load_relaxed(&thread->covered) != 0)
			mt_cover_end(thread);
		record_deferred(thread);
		mt_guard_set(thread, value);
	} while (mt_load_relaxed(&thread->pending) != 0);
}
