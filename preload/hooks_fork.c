/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Marks forks in the parent's stream. The child needs no hook: the wiped page tells it what it is,
 * whichever way it was made. vfork is not wrapped: its child would return into a frame that the
 * parent still needs, and what it allocates is the parent's.
 */
#include "preload/hooks.h"

#include <errno.h>

#include "preload/attach.h"
#include "preload/cover.h"
#include "preload/emit.h"
#include "preload/real.h"
#include "preload/sandbox.h"

static void mark(struct mt_thread *thread, enum mt_rec_kind kind, uint64_t number, uint64_t size)
{
	uint64_t guard = thread->guard;

	mt_guard_set(thread, MT_GUARD_WRITE);
	mt_emit_before(thread, kind, (const void *)(uintptr_t)number, size);
	mt_emit_leave(thread, guard);
}

/* In the place of a kernel that does not. The child of a raw clone stays a part of its parent. */
static void wipe(void)
{
	mt_store_relaxed(&mt_wiped.claiming, 0);
	mt_store_relaxed(&mt_wiped.own, 0);
	mt_store_relaxed(&mt_wiped.fork_number, 0);
	mt_store_relaxed(&mt_wiped.epoch, 0);
}

/* Numbers that a mark can carry that is put off: as if they were starts of mappings. */
static uint64_t next_number(void)
{
	return mt_add_relaxed(&mt_image.fork_count, 4096) + 4096;
}

/* By a signal handler, while its thread writes a record: the mark comes when that is done. */
static pid_t fork_in_write(struct mt_thread *thread, pid_t (*real)(void))
{
	uint64_t number = next_number();
	pid_t pid = real();

	if (pid > 0)
		mt_emit_defer(thread, MT_REC_FORK_DONE, (const void *)(uintptr_t)number,
			      (uint64_t)pid);
	if (pid != 0)
		return pid;
	if (mt_unlikely(mt_image.wipes_itself))
		wipe();
	/* No number: the mark may come long after the child's end, so nobody is to wait for it. */
	if (mt_load_acquire(&mt_image.recording) == MT_RECORDING_ON)
		mt_cover_begin(thread);
	return 0;
}

static pid_t marked_fork(pid_t (*real)(void))
{
	struct mt_thread *thread = &mt_thread;
	uint64_t number;
	pid_t pid;

	if (mt_unlikely(thread->guard == MT_GUARD_WRITE))
		return fork_in_write(thread, real);
	(void)mt_sandbox_end_child(); /* who forks is no vfork child: that is over */
	number = next_number();
	/* The child must not inherit a half-done registration. */
	mt_attach();
	mark(thread, MT_REC_FORK, number, 0);
	thread->fork_number = number;
	pid = real();
	if (pid == 0) {
		if (mt_unlikely(mt_image.wipes_itself))
			wipe();
		/* Wiped in a child that this one makes by a raw clone: that is not of this fork. */
		mt_store_relaxed(&mt_wiped.fork_number, number);
		thread->fork_number = 0;
		return 0;
	}
	thread->fork_number = 0;
	mark(thread, MT_REC_FORK_DONE, number, pid > 0 ? (uint64_t)pid : 0);
	return pid;
}

MT_HOOK pid_t MT_NAME(fork)(void)
{
	(void)mt_real_resolve(); /* false only inside the look-up, where nobody forks */
	return marked_fork(mt_real.fork);
}

MT_HOOK pid_t MT_NAME(_Fork)(void)
{
	(void)mt_real_resolve(); /* as above */
	if (mt_real._Fork == NULL) {
		errno = ENOSYS;
		return -1;
	}
	return marked_fork(mt_real._Fork);
}
