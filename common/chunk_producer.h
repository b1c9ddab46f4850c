/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The producer's half of the protocol of chunk.h: claims slots and chunks, appends and publishes
 * records, waits for chunks or drops, counts what is lost.
 *
 * It calls nothing of libc, takes no lock and allocates nothing, so it may run inside malloc, in a
 * signal handler's thread, and in the child of a threaded process. errno stays as it was. The only
 * system call is the futex wait for a chunk, and none is made once no_syscalls is set.
 *
 * Owners: one struct mt_producer for an image (children inherit it, constant but for no_syscalls);
 * one struct mt_writer for a thread, used by that thread alone and never from within itself: the
 * caller keeps signal handlers out with a guard.
 */
#ifndef MT_COMMON_CHUNK_PRODUCER_H
#define MT_COMMON_CHUNK_PRODUCER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/atomic.h"
#include "common/chunk.h"

struct mt_producer {
	struct mt_shm_header *header;
	struct mt_proc_slot *procs;
	struct mt_thread_slot *threads;
	uint32_t *links;
	char *chunks;
	uint32_t chunk_bytes;
	uint32_t chunk_count;
	uint32_t proc_count;
	uint32_t thread_count;
	uint32_t policy; /* enum mt_policy */
	uint32_t max_wait_ms;
	uint32_t no_syscalls;	  /* filters in force: waits spin instead of sleeping; atomic */
	uint64_t (*now_ns)(void); /* any clock that runs on while a thread waits */
};

struct mt_writer {
	struct mt_rec *next;	/* where the next record goes */
	struct mt_rec *end;	/* behind the chunk's last; next == end: turn over first */
	struct mt_chunk *chunk; /* NULL: none yet */
	uint32_t slot;		/* thread slot + 1, 0: none */
	uint32_t proc;		/* process slot + 1, 0: none */
};

/* What a process slot says of its process. */
struct mt_proc_birth {
	uint32_t parent; /* process slot + 1, 0: the image that registered */
	uint32_t parent_generation;
	uint64_t fork_number;
	uint64_t stamp;
	int32_t pid;
	int32_t tid;
};

/* Results of mt_writer_turn_over beside 0; a cause of loss c is returned as MT_TURN_LOST + c. */
enum {
	MT_TURN_CLOSED = 1, /* the session is over: record nothing more, count nothing */
	MT_TURN_LOST = 2,
};

/*
 * Checks the header of a mapped segment of `map_bytes` and fills `ret_producer`, but for now_ns.
 * Returns 0 or -EINVAL: of another version, or not laid out within the mapping.
 */
int mt_producer_open(void *map, uint64_t map_bytes, struct mt_producer *ret_producer);

/* Returns the process slot + 1, or 0 when there is none. */
uint32_t mt_producer_claim_proc(const struct mt_producer *producer,
				const struct mt_proc_birth *birth);

/* Gives the writer a thread slot of process slot `proc` (+ 1). Returns false when there is none. */
bool mt_writer_claim(const struct mt_producer *producer, struct mt_writer *writer, uint32_t proc,
		     int32_t tid, uint64_t tcb, uint64_t stamp);

/*
 * Gets the writer, whose slot is claimed, a new chunk; waits for one as the policy says. Returns 0,
 * MT_TURN_CLOSED or MT_TURN_LOST + cause; only with 0 the writer has changed.
 */
int mt_writer_turn_over(const struct mt_producer *producer, struct mt_writer *writer);

/* Counts one lost record: of the thread, else of its process, else of the image. */
void mt_writer_lost(const struct mt_producer *producer, const struct mt_writer *writer,
		    enum mt_lost cause);

/*
 * Writes one record and publishes it; next must not be end. `next` moves on before the record is
 * published: a thread that is torn out by siglongjmp between the two publishes it with its next.
 */
static inline void mt_writer_put(struct mt_writer *writer, uint64_t stamp, uint64_t addr,
				 uint64_t size, enum mt_rec_kind kind)
{
	struct mt_rec *rec = writer->next;

	rec->stamp = stamp;
	rec->addr = addr;
	rec->size_kind = size << 8 | (uint64_t)kind;
	writer->next = rec + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mt_store_release(&writer->chunk->used_bytes,
			 (uint32_t)((char *)(rec + 1) - (char *)writer->chunk));
}

#endif
