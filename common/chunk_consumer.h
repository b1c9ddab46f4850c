/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sidecar's side of a segment: finds slots that threads and processes claimed, notes what is
 * published, reads it, gives chunks and slots back. The protocol is in chunk.h.
 *
 * Trusts nothing: each word is copied once, checked, then used. What it must rely on (which chunk
 * is in whose list, how much of it was noted) lives in its own memory. A stream that breaks the
 * rules is stopped for good (`stopped`), its chunks stay where they are, nothing else is disturbed.
 *
 * Owner and threads: one thread, the merge.
 */
#ifndef MT_COMMON_CHUNK_CONSUMER_H
#define MT_COMMON_CHUNK_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/atomic.h"
#include "common/chunk.h"
#include "common/shm.h"

#define MT_NO_CHUNK UINT32_MAX

/* Chunks that rest before they are given back, at most; a power of two. */
#define MT_RESTING_MAX 256u

/* What we noted of a chunk; numbers are index + 1. */
struct mt_chunk_note {
	uint32_t taken; /* in the list of some stream */
	uint32_t next;
	uint32_t used_bytes;
};

/* Slots that nobody is known to hold, and how many claims among them are under way. */
struct mt_slot_scan {
	uint32_t *idle;
	uint32_t idle_count, idle_space;
	uint32_t bump;	  /* slots below are idle or known */
	uint32_t most;	  /* slots that are looked at */
	uint32_t unfound; /* slots above that were handed out, and there was no memory for them */
	uint32_t tag;	  /* of the free list's head, when last looked at */
	uint32_t pushes;
	uint32_t expected;
	uint32_t at;
	bool took; /* since the head was looked at */
};

struct mt_consumer {
	struct mt_shm shm;
	struct mt_chunk_note *notes;
	struct mt_slot_scan threads, procs;
	uint32_t limit;	     /* chunks granted */
	uint32_t in_lists;   /* chunks that streams hold */
	uint32_t given_back; /* since the last mt_consumer_settle() */
	uint32_t unheard_of; /* of them, those that no waiter was woken for */
	/* Chunks that were read and rest, oldest first: a ring. */
	uint32_t resting[MT_RESTING_MAX];
	uint32_t rest_begin, rest_end; /* count on, taken modulo the size */
	uint32_t read_chunks;	       /* in this window of rounds */
	uint32_t pace;		       /* chunks read in a window, on average, times REST_SHARE */
	uint32_t rounds;	       /* settled */
	uint64_t heartbeat;
	bool starved;
};

/* A claimed slot, copied. */
struct mt_thread_claim {
	uint32_t slot, proc, generation;
	int32_t tid;
	uint64_t tcb;
	uint64_t claim_stamp;
};

struct mt_proc_claim {
	uint32_t slot, generation;
	uint32_t parent; /* slot + 1, 0: none */
	uint32_t parent_generation;
	int32_t pid, tid;
	uint64_t fork_number;
	uint64_t claim_stamp;
};

/*
 * A thread's records. `seen` are published, `covered` were so a round earlier, `taken` were read.
 * While taken < seen, `read` points to the next record, and those up to `end` are readable.
 */
struct mt_stream {
	const struct mt_rec *read, *end;
	uint64_t taken, seen, covered;
	uint32_t chunk; /* being read */
	uint32_t tail;	/* noted last */
	uint32_t slot;
	bool stopped;
};

/* Takes a copy of shm, which it owns from then on. Returns 0 or -ENOMEM. */
int mt_consumer_init(struct mt_consumer *consumer, const struct mt_shm *shm);

/* How many slots of each kind are looked at, from the first on; all when nothing is said. */
void mt_consumer_look_at(struct mt_consumer *consumer, uint32_t most);

/* Unmaps the segment. By the thread that holds `alive`, if any. */
void mt_consumer_fini(struct mt_consumer *consumer);

/*
 * Newly claimed slots: begin a scan, then call next until false. All that were claimed before the
 * scan began are found, maybe later ones too. Thread slots are to be scanned before process slots:
 * a thread's process slot is then always found in the same round. To begin returns false without
 * memory for all: what is not found is there for the next scan.
 */
bool mt_consumer_scan_threads(struct mt_consumer *consumer);
bool mt_consumer_next_thread(struct mt_consumer *consumer, struct mt_thread_claim *ret_claim);
bool mt_consumer_scan_procs(struct mt_consumer *consumer);
bool mt_consumer_next_proc(struct mt_consumer *consumer, struct mt_proc_claim *ret_claim);

void mt_stream_init(struct mt_stream *stream, uint32_t slot);

/*
 * Notes what is published now: covered = seen, seen = all. Chunks that are read and full are given
 * back. Returns 0, or -EPROTO when the stream broke the rules and was stopped.
 */
int mt_stream_note(struct mt_consumer *consumer, struct mt_stream *stream);

/*
 * Goes on to the next noted chunk; to be called when read == end and taken < seen, and sets both.
 * Gives the chunk that was read back.
 */
void mt_stream_advance(struct mt_consumer *consumer, struct mt_stream *stream);

/* A record, each word read once. */
static inline struct mt_rec mt_stream_peek(const struct mt_stream *stream)
{
	struct mt_rec rec = {
		.stamp = mt_load_relaxed(&stream->read->stamp),
		.addr = mt_load_relaxed(&stream->read->addr),
		.size_kind = mt_load_relaxed(&stream->read->size_kind),
	};

	return rec;
}

/* Programs may count wrongly: no sum of such counts comes round to 0. */
static inline void mt_lost_add(uint64_t *total, uint64_t more)
{
	if (__builtin_add_overflow(*total, more, total))
		*total = UINT64_MAX;
}

/* Adds a thread slot's lost counters to lost. */
void mt_consumer_thread_lost(const struct mt_consumer *consumer, uint32_t slot, uint64_t *lost);
void mt_consumer_proc_lost(const struct mt_consumer *consumer, uint32_t slot, uint64_t *lost);
void mt_consumer_image_lost(const struct mt_consumer *consumer, uint64_t *lost);

/* The bits of enum mt_past that the image has set, and no others. */
uint32_t mt_consumer_past_us(const struct mt_consumer *consumer);

/* The thread is gone and all is read: takes its chunks back and frees the slot. */
void mt_consumer_retire_thread(struct mt_consumer *consumer, struct mt_stream *stream);
void mt_consumer_retire_proc(struct mt_consumer *consumer, uint32_t slot);

/* Chunks never handed out yet, or given back: an estimate from our own books. */
uint32_t mt_consumer_free_chunks(const struct mt_consumer *consumer);
uint32_t mt_consumer_waiters(const struct mt_consumer *consumer);

/* Raises or lowers how many chunks may be handed out for the first time. */
void mt_consumer_set_limit(struct mt_consumer *consumer, uint32_t limit);

/*
 * The end of a round, at now_ns of CLOCK_MONOTONIC: heartbeat, starved, and the waiters are woken
 * when there is something. For them no chunk rests.
 */
void mt_consumer_settle(struct mt_consumer *consumer, uint64_t now_ns, bool starved);

/*
 * In the middle of a round, every now and then: no chunk rests while somebody waits, and as many
 * waiters are woken as chunks were given back. The heartbeat goes on if the sidecar `moves`: that
 * is, unless it waits for something that may never come.
 */
void mt_consumer_tend(struct mt_consumer *consumer, uint64_t now_ns, bool moves);

/* Nobody starts a chunk any more. */
void mt_consumer_close(struct mt_consumer *consumer);

#endif
