/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/thread.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/raw_syscall.h"
#include "preload/image.h"
#include "preload/stamp.h"

/* glibc keeps the tid a few hundred bytes behind the start of its struct pthread. */
#define TID_SCAN_FROM  64
#define TID_SCAN_BYTES 1536
/* How often a thread looks again while another claims the process slot: far more than it takes. */
#define CLAIM_TURNS 100000

static int32_t read_tid(int32_t offset)
{
	int32_t tid;

	memcpy(&tid, (const char *)pthread_self() + offset, sizeof(tid));
	return tid;
}

void mt_thread_find_tid(void)
{
	int32_t tid = (int32_t)mt_syscall0(SYS_gettid);
	int32_t offset;

	for (offset = TID_SCAN_FROM; offset < TID_SCAN_BYTES; offset += 4) {
		if (read_tid(offset) == tid) {
			mt_image.tid_offset = offset;
			return;
		}
	}
}

/* 0: this process is the child of something else than fork(), or nobody's. */
static uint64_t fork_number(const struct mt_thread *thread)
{
	/* The first while fork() has not yet returned: handlers of pthread_atfork may allocate. */
	return thread->fork_number != 0 ? thread->fork_number
					: mt_load_relaxed(&mt_wiped.fork_number);
}

/*
 * The control block is right in threads that libc made, and in children that libc forked; a raw
 * clone leaves the parent's number in it, which a process slot of the parent's or no fork number
 * gives away.
 */
static bool is_raw_clone_child(const struct mt_thread *thread)
{
	return thread->epoch != 0 && fork_number(thread) == 0;
}

int32_t mt_thread_tid(const struct mt_thread *thread)
{
	if (mt_image.tid_offset != 0 && !is_raw_clone_child(thread))
		return read_tid(mt_image.tid_offset);
	if (mt_load_relaxed(&mt_image.producer.no_syscalls) != 0)
		return 0;
	return (int32_t)mt_syscall0(SYS_gettid);
}

/* 0: nobody may ask. Such a child of a raw clone cannot say whose its records are. */
static int32_t process_id(const struct mt_thread *thread, int32_t tid)
{
	/* Only the thread that forked is in the child at first, and it leads the process. */
	if (thread->epoch != 0)
		return tid;
	if (mt_load_relaxed(&mt_image.producer.no_syscalls) != 0)
		return 0;
	return (int32_t)mt_syscall0(SYS_getpid);
}

/* Claims this process's slot; one thread does, the others wait for the epoch. */
static uint64_t claim_process(struct mt_thread *thread)
{
	struct mt_producer *producer = &mt_image.producer;
	struct mt_proc_birth birth = { 0 };
	uint64_t epoch;
	uint32_t nobody = 0;
	uint32_t slot;
	int turns;

	if (!mt_cas_acq_rel(&mt_wiped.claiming, &nobody, 1)) {
		for (turns = 0; turns < CLAIM_TURNS; turns++) {
			epoch = mt_load_acquire(&mt_wiped.epoch);
			if (epoch != 0 || mt_load_acquire(&mt_wiped.claiming) == 0)
				return epoch;
		}
		return 0;
	}
	epoch = mt_load_acquire(&mt_wiped.epoch);
	if (epoch != 0)
		goto done;
	birth.parent = mt_image.proc;
	birth.parent_generation = mt_image.proc_generation;
	birth.fork_number = fork_number(thread);
	birth.stamp = mt_stamp(mt_image.stamp_mode);
	birth.tid = mt_thread_tid(thread);
	birth.pid = process_id(thread, birth.tid);
	slot = birth.pid != 0 ? mt_producer_claim_proc(producer, &birth) : 0;
	if (slot != 0) {
		mt_image.proc = slot;
		mt_image.proc_generation = producer->procs[slot - 1].generation;
		epoch = (uint64_t)mt_image.proc_generation << 32 | slot;
		mt_store_relaxed(&mt_wiped.own, 1);
		mt_store_release(&mt_wiped.epoch, epoch);
	}
done:
	mt_store_release(&mt_wiped.claiming, 0);
	return epoch;
}

int mt_thread_adopt(struct mt_thread *thread)
{
	uint64_t epoch = mt_load_acquire(&mt_wiped.epoch);
	int32_t tid;

	if (epoch != 0 && thread->epoch == epoch)
		return 0;
	if (epoch == 0)
		epoch = claim_process(thread);
	tid = mt_thread_tid(thread);
	if (epoch == 0) {
		/* Not our parent's slots: the loss is the image's. */
		thread->writer = (struct mt_writer){ 0 };
		return MT_TURN_LOST +
		       (process_id(thread, tid) == 0 ? MT_LOST_SANDBOX : MT_LOST_NO_SLOT);
	}
	if (!mt_writer_claim(&mt_image.producer, &thread->writer, (uint32_t)epoch, tid,
			     (uint64_t)pthread_self(), mt_stamp(mt_image.stamp_mode)))
		return MT_TURN_LOST + MT_LOST_NO_SLOT;
	thread->stamp_mode = mt_image.stamp_mode;
	/* Last: a signal handler that leaves by siglongjmp before this makes us claim again. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->epoch = epoch;
	thread->deferred_count = 0; /* a parent's are the parent's to record */
	thread->fork_number = 0;
	return 0;
}
