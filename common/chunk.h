/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The shared memory between the program and the sidecar: layout and protocol.
 *
 * One memfd for each process image that registered, made by the sidecar, sparse, at its largest
 * size, sealed against resizing, mapped shared by both. Children that the image forks use the
 * mapping that they inherited. It holds, each part at a multiple of 4096 bytes, whatever a page is:
 *
 *   +--------+---------------+----------------+-------------+----------+----------+-- - - --+
 *   | header | process slots | thread slots   | chunk links | chunk 0  | chunk 1  |         |
 *   +--------+---------------+----------------+-------------+----------+----------+-- - - --+
 *
 * Roles. A *producer* is a thread of the program that records; the *consumer* is the sidecar's one
 * merge thread. Producers trust the memory (who spoils it spoils his own records); the consumer
 * trusts nothing: it copies a word once, checks it, then uses it, and keeps in its own memory all
 * that it must rely on (which chunk is in whose list, what was handed out).
 *
 * Stream of a thread. Each recording thread owns a thread slot, and the slot is the head of a list
 * of chunks, oldest first, that only its owner extends and only the consumer shortens:
 *
 *   slot.first_chunk -> chunk.next -> chunk.next -> 0     (values are index + 1; 0 is "none yet")
 *
 * A record is published by a release store of chunk.used_bytes behind it; the next chunk, made
 * ready (used_bytes = header, next = 0), by a release store of its number in the old chunk's next
 * (or in slot.first_chunk). The consumer loads both with acquire. So a record is published or
 * absent, never half, and stays readable whatever ends the process. A chunk that has a next is
 * full and will not change; the consumer gives it back when it has read it all.
 *
 * Which field who writes:
 *   producer (owner of the slot)   slot: all but `state` FREE; chunk: all
 *   producers, any                 free_head (pop), bump, thread_free_head (pop), thread_bump,
 *                                  proc_* likewise, waiters, drop_latch, past_us, the lost
 *                                  counters of a process slot and of the header
 *   consumer                       heartbeat, limit, closed, starved, free_head (push), links,
 *                                  thread_free_head (push), proc_free_head (push),
 *                                  slot.state = FREE, wake
 *   kernel                         alive (robust futex: FUTEX_OWNER_DIED when the sidecar is gone)
 *
 * Free chunks. First the LIFO list (free_head, links), then chunks never used: bump counts those
 * handed out, up to limit, which the consumer raises when memory may be spent. Heads are
 * {tag:32, index + 1:32}; each change adds 1 to the tag, which is what makes the pop safe against
 * reuse. links[i] is the chunk below i in the list; it is written before the head is (release), and
 * a pop that reads a link which has since changed fails on the tag. A thread killed between pop and
 * publication loses that one chunk until the image's memory goes.
 *
 * No chunk to be had. With MT_POLICY_BLOCK the producer adds itself to waiters and waits on the
 * futex `wake` in slices, while heartbeat moves; without a move for max_wait_ms, or when `alive`
 * says that the sidecar is dead, or `starved` says that none will come back (idle threads hold
 * them, or a stream that was stopped), it latches drop (drop_latch = heartbeat + 1) until heartbeat
 * moves on. With MT_POLICY_DROP it does not wait. The heartbeat moves while the sidecar makes
 * progress, in the middle of long rounds too; it rests when the sidecar does, and when the sidecar
 * waits for an output that takes nothing. All images of a session give up at about the same time,
 * whenever their waits began: beat_ns says how long ago the heartbeat moved, and a producer that
 * finds that to be max_wait_ms waits for a short look of its own only. A record dropped adds 1 to a
 * lost counter of its thread's slot, by cause; without a slot, of the process's slot; without that,
 * of the header. The consumer wakes as many waiters as it gave chunks back, at the end of a round
 * and every now and then within it.
 *
 * Fork. The child of a process finds (by a page that is wiped on fork) that its slot is its
 * parent's, and claims a process slot and a thread slot of its own. vfork children and others that
 * share the memory record into the stream of the thread they share.
 *
 * End. `closed` set: nobody starts a chunk any more, for good. The consumer retires a thread slot
 * when its thread is gone (the kernel said so, or its tid or tcb appears in a newer slot, or /proc)
 * and all is read: it takes the chunks back, then sets FREE and pushes the slot.
 *
 * Progress: producers are lock-free (their loops retry only when another made progress), but for
 * the bounded wait above; the consumer waits for nobody. What a dying writer leaves: published
 * records, at most one unlinked chunk, at most one unusable slot.
 */
#ifndef MT_COMMON_CHUNK_H
#define MT_COMMON_CHUNK_H

#include <assert.h>
#include <stdint.h>

#define MT_SHM_MAGIC   UINT64_C(0x314d48534b52544d) /* "MTRKSHM1" as little-endian bytes */
#define MT_SHM_VERSION 1u
#define MT_SHM_ALIGN   4096u

#define MT_CHUNK_BYTES_MIN 4096u
#define MT_CHUNK_BYTES_MAX 32768u
#define MT_SHM_PROCS_MAX   16384u
#define MT_SHM_THREADS_MAX 131072u
#define MT_SHM_CHUNKS_MAX  1048576u

/* Which counter stamps are read from. */
enum mt_counter {
	MT_COUNTER_TSC = 1,	  /* x86 RDTSC, invariant */
	MT_COUNTER_CNTVCT = 2,	  /* aarch64 virtual counter */
	MT_COUNTER_MONOTONIC = 3, /* clock_gettime(CLOCK_MONOTONIC), nanoseconds */
};

enum mt_policy {
	MT_POLICY_BLOCK = 0,
	MT_POLICY_DROP = 1,
};

/* Flags of a segment, set by the sidecar before the program maps it. */
enum {
	MT_SHM_STRICT = 1 << 0,	     /* --order=strict: RDTSCP after an allocation */
	MT_SHM_MMAP_EVENTS = 1 << 1, /* record the program's own mmap, munmap, mremap */
	MT_SHM_FOLLOW_ENV = 1 << 2,  /* put us back into environments given to exec */
};

/* Why a record was lost: indices of the lost counters. */
enum mt_lost {
	MT_LOST_POLICY,	 /* no chunk, policy drop */
	MT_LOST_TIMEOUT, /* no chunk, waited max_wait_ms in vain, or the sidecar was dead */
	MT_LOST_NO_SLOT, /* no process or thread slot */
	MT_LOST_SANDBOX, /* the program forbade what recording needs (strict seccomp, no RDTSC,
			    getpid) */
	MT_LOST_SIGNAL,	 /* a signal handler's call, made while its thread wrote a record */
	MT_LOST_LATE,	 /* recorded, but its process's Exit had to be written before it; counted by
			    the sidecar alone */
	MT_LOST_CAUSES
};

/* By what libraries of an image were opened that bind malloc past us. */
enum mt_past {
	MT_PAST_DEEPBIND = 1 << 0, /* RTLD_DEEPBIND: their own libc comes before us */
	MT_PAST_DLMOPEN = 1 << 1,  /* in another namespace, which has a libc of its own */
};

/* What a record says. */
enum mt_rec_kind {
	MT_REC_NONE = 0,
	MT_REC_MALLOC,
	MT_REC_CALLOC,
	MT_REC_ALIGNED_ALLOC,
	MT_REC_FREE,
	MT_REC_REALLOC_BEGIN,  /* addr: old block; before the call */
	MT_REC_REALLOC_END,    /* addr: new block, size; after the call */
	MT_REC_REALLOC_FAILED, /* addr: old block, which stays */
	MT_REC_REALLOC_FREED,  /* realloc(p, 0) that freed: addr: old block */
	MT_REC_MMAP,
	MT_REC_MUNMAP,
	MT_REC_FORK,	  /* before a fork: addr: number that the child's slot repeats */
	MT_REC_FORK_DONE, /* after it, in the parent: addr: that number, size: child's pid or 0;
			     alone when a signal handler forked while its thread wrote a record */
	MT_REC_KINDS
};

/* One record. size is below 2^56: no larger block can exist. */
struct mt_rec {
	uint64_t stamp; /* counter value */
	uint64_t addr;
	uint64_t size_kind; /* size << 8 | enum mt_rec_kind */
};

static_assert(sizeof(struct mt_rec) == 24, "a record is 24 bytes");

struct mt_chunk {
	uint32_t used_bytes; /* of the chunk, header included: release by the producer */
	uint32_t next;	     /* index + 1 of the thread's next chunk, 0: none yet: release */
	uint32_t owner;	     /* thread slot */
	uint32_t reserved[13];
	struct mt_rec records[];
};

static_assert(sizeof(struct mt_chunk) == 64, "a chunk's header is one line");

enum mt_slot_state {
	MT_SLOT_FREE = 0,
	MT_SLOT_ACTIVE = 1, /* release by its owner, when all other fields are set */
};

struct mt_thread_slot {
	uint32_t state;	    /* enum mt_slot_state */
	uint32_t next_free; /* index + 1: list of free slots */
	uint32_t proc;	    /* process slot */
	int32_t tid;	    /* in the thread's own PID namespace */
	uint64_t tcb; /* thread pointer; a newer slot of the process with it proves this one dead */
	uint64_t claim_stamp;
	uint32_t first_chunk; /* index + 1; release */
	uint32_t generation;  /* adds 1 at each claim */
	uint32_t reserved[6];
	uint64_t lost[8]; /* by enum mt_lost; relaxed, written by the owner alone */
};

static_assert(sizeof(struct mt_thread_slot) == 128, "a thread slot is two lines");

struct mt_proc_slot {
	uint32_t state;	    /* enum mt_slot_state */
	uint32_t next_free; /* index + 1 */
	uint32_t parent;    /* process slot of the parent + 1; 0: the image that registered */
	int32_t pid;	    /* in its own PID namespace */
	int32_t tid;	    /* of the thread that claimed it */
	uint32_t generation;
	uint64_t fork_number; /* of the parent's MT_REC_FORK, 0: none (raw clone) */
	uint64_t claim_stamp;
	uint32_t parent_generation;
	uint32_t reserved[5];
	uint64_t lost[8]; /* what no thread slot could count; relaxed adds */
};

static_assert(sizeof(struct mt_proc_slot) == 128, "a process slot is two lines");

struct mt_shm_header {
	/* Constant once the sidecar handed the memfd out. */
	uint64_t magic;
	uint32_t version;
	uint32_t flags;
	uint64_t total_bytes;
	uint32_t chunk_bytes; /* a power of two */
	uint32_t chunk_count;
	uint32_t proc_count;
	uint32_t thread_count;
	uint32_t policy;
	uint32_t counter;
	uint64_t procs_offset;
	uint64_t threads_offset;
	uint64_t links_offset;
	uint64_t chunks_offset;
	uint32_t max_wait_ms;
	uint32_t reserved0[11];

	/* Written by the sidecar, read by producers in their slow path. */
	uint64_t heartbeat;
	uint32_t limit; /* chunks that may be handed out for the first time */
	uint32_t closed;
	uint32_t starved;
	uint32_t alive;	  /* robust futex: the tid of a thread of the sidecar */
	uint64_t beat_ns; /* CLOCK_MONOTONIC when heartbeat moved, for the sidecar; 0: not yet */
	uint32_t reserved1[8];

	/* Free chunks. */
	uint64_t free_head;
	uint32_t bump;
	uint32_t reserved2[13];

	/* Waiting. */
	uint32_t waiters;
	uint32_t wake; /* futex; adds 1 when chunks were given back to waiters */
	uint64_t drop_latch;
	uint32_t reserved3[12];

	/* Slots. */
	uint64_t thread_free_head;
	uint64_t proc_free_head;
	uint32_t thread_bump; /* slots ever handed out; may run past thread_count: clamp */
	uint32_t proc_bump;
	uint32_t past_us; /* enum mt_past; bits are only added */
	uint32_t reserved4[9];
	uint64_t lost[8]; /* what no slot could count */
};

static_assert(sizeof(struct mt_shm_header) == 448, "the header is seven lines");

#endif
