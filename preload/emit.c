/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/emit.h"

#include "preload/attach.h"
#include "preload/thread.h"

struct mt_wiped mt_wiped __attribute__((aligned(MT_PAGE_BYTES)));
struct mt_image mt_image;
__thread struct mt_thread mt_thread __attribute__((tls_model("initial-exec")));

static_assert(sizeof(struct mt_wiped) == MT_PAGE_BYTES, "the kernel wipes whole pages");

/* A session that is over is over for good: later records cost one test. */
static void stop_for_good(void)
{
	mt_store_relaxed(&mt_image.recording, MT_RECORDING_OFF);
	mt_store_relaxed(&mt_wiped.epoch, 0);
}

/* In a child that never claimed slots, what the thread holds is its parent's: count for the image.
 */
static void count_sandboxed(const struct mt_thread *thread)
{
	static const struct mt_writer nobody;

	mt_writer_lost(&mt_image.producer,
		       mt_load_relaxed(&mt_wiped.own) != 0 ? &thread->writer : &nobody,
		       MT_LOST_SANDBOX);
}

/* Makes the thread ready to write. Returns false when the record was lost and counted, or off. */
static bool make_ready(struct mt_thread *thread)
{
	int result;

	if (mt_load_relaxed(&mt_image.recording) == MT_RECORDING_NEW)
		mt_attach();
	switch (mt_load_acquire(&mt_image.recording)) {
	case MT_RECORDING_ON:
		break;
	case MT_RECORDING_SANDBOX:
		count_sandboxed(thread);
		return false;
	default:
		return false;
	}
	if (!mt_thread_adopt(thread)) {
		mt_writer_lost(&mt_image.producer, &thread->writer, MT_LOST_NO_SLOT);
		return false;
	}
	if (thread->writer.next != thread->writer.end)
		return true;
	result = mt_writer_turn_over(&mt_image.producer, &thread->writer);
	if (result == 0)
		return true;
	if (result == MT_TURN_CLOSED)
		stop_for_good();
	else
		mt_writer_lost(&mt_image.producer, &thread->writer,
			       (enum mt_lost)(result - MT_TURN_LOST));
	return false;
}

__attribute__((noinline, cold)) void mt_emit_slow(struct mt_thread *thread, enum mt_rec_kind kind,
						  uint64_t addr, uint64_t size, bool after)
{
	if (!make_ready(thread))
		return;
	mt_writer_put(&thread->writer, after ? mt_stamp_after() : mt_stamp(), addr, size, kind);
}

void mt_emit_interrupted(const struct mt_thread *thread)
{
	/* Counters are plain sums of relaxed adds by one thread; the one that we interrupted can
	 * at worst be adding too, and then one of two losses is not counted. */
	if (mt_load_relaxed(&mt_image.recording) == MT_RECORDING_ON)
		mt_writer_lost(&mt_image.producer, &thread->writer, MT_LOST_SIGNAL);
}
