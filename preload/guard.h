/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a thread keeps: the re-entrancy guard and its writer. At most 128 bytes of initial-exec TLS,
 * so that reaching it never allocates; what every hook touches is in the first 64 of them.
 *
 * A hook sets the guard on entry. A hook that finds it set was called by the allocator below
 * (MT_GUARD_CALL) or by a signal handler while a record was being written (MT_GUARD_WRITE): it
 * passes the call on and records nothing.
 *
 * Before ld.so has relocated this library, the offset of mt_thread reads as 0, and the structure
 * then lies over the thread control block, whose first word is its own address (aarch64: that of
 * the thread's vector of TLS blocks). So `guard` is the first member, as wide as a pointer, and
 * tested before anything is written: such a call takes the way of a nested one, which asks
 * mt_early_is_relocated.
 */
#ifndef MT_PRELOAD_GUARD_H
#define MT_PRELOAD_GUARD_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/chunk_producer.h"

#define mt_likely(x)   __builtin_expect(!!(x), 1)
#define mt_unlikely(x) __builtin_expect(!!(x), 0)

enum {
	MT_GUARD_NONE = 0,
	MT_GUARD_CALL = 1,  /* in the next allocator */
	MT_GUARD_WRITE = 2, /* in our own code */
};

/*
 * A mapping call or a fork of a signal handler that interrupted a write: recorded when the write is
 * done.
 */
struct mt_deferred {
	uint64_t start_kind; /* page-aligned start, or number of the fork | enum mt_rec_kind */
	uint64_t len;
};

#define MT_DEFERRED_MAX 2

#define MT_EPOCH_NONE UINT64_MAX /* no process has it */

/*
 * A line of its own where that can be had. A library that comes late (by dlopen, or at the start
 * under LD_AUDIT) is refused when it asks for more than glibc's own thread block is aligned to: 64
 * on x86-64; on aarch64 32 with glibc 2.36, and less in older ones.
 */
#if defined(__x86_64__)
#define MT_THREAD_ALIGN 64
#else
#define MT_THREAD_ALIGN 16
#endif

struct mt_thread {
	uint64_t guard;
	uint64_t epoch; /* that of the process this thread has its slot in */
	struct mt_writer writer;
	union {
		uint64_t pending; /* not 0: something is to be done when the write is over */
		struct {
			uint32_t deferred_count;
			uint32_t covered; /* 1: see cover.h */
		};
	};
	uint32_t stamp_mode;	/* enum mt_stamp_mode: the image's, at hand */
	uint32_t child_filters; /* of no_syscalls, those of a vfork child of this thread */
	uint64_t fork_number;	/* of the fork() that this thread is in, 0: none */
	struct mt_deferred deferred[MT_DEFERRED_MAX];
} __attribute__((aligned(MT_THREAD_ALIGN)));

static_assert(offsetof(struct mt_thread, guard) == 0, "see above");
static_assert(offsetof(struct mt_thread, fork_number) == 64, "one line for the hooks");
static_assert(sizeof(struct mt_thread) <= 128, "room for static TLS is scarce");

extern __thread struct mt_thread mt_thread __attribute__((tls_model("initial-exec")));

/* The fence keeps the compiler from moving our stores across; a signal handler may look. */
static inline void mt_guard_set(struct mt_thread *thread, uint64_t value)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mt_store_relaxed(&thread->guard, value);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif
