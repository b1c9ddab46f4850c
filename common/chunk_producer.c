/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/chunk_producer.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <time.h>

#include "common/raw_syscall.h"

/* A sleep ends after this at the latest, to look at the heartbeat. */
#define SLICE_NS   10000000
#define SPIN_TURNS 2000
/* A thread looks for itself for so long, whatever beat_ns says: all may have been stopped, and go
 * on just now. */
#define LOOK_NS UINT64_C(100000000)
/* What seems older tells of clocks that differ (a time namespace). */
#define OLDEST_NS UINT64_C(3600000000000)

static bool part_fits(uint64_t offset, uint64_t count, uint64_t bytes_each, uint64_t total)
{
	return offset % MT_SHM_ALIGN == 0 && offset >= sizeof(struct mt_shm_header) &&
	       offset <= total && count > 0 && count <= (total - offset) / bytes_each;
}

int mt_producer_open(void *map, uint64_t map_bytes, struct mt_producer *ret_producer)
{
	struct mt_shm_header *header = map;
	char *base = map;

	if (map_bytes < sizeof(*header) || header->magic != MT_SHM_MAGIC ||
	    header->version != MT_SHM_VERSION || header->total_bytes != map_bytes)
		return -EINVAL;
	if (header->chunk_bytes < MT_CHUNK_BYTES_MIN || header->chunk_bytes > MT_CHUNK_BYTES_MAX ||
	    (header->chunk_bytes & (header->chunk_bytes - 1)) != 0)
		return -EINVAL;
	if (!part_fits(header->procs_offset, header->proc_count, sizeof(struct mt_proc_slot),
		       map_bytes) ||
	    !part_fits(header->threads_offset, header->thread_count, sizeof(struct mt_thread_slot),
		       map_bytes) ||
	    !part_fits(header->links_offset, header->chunk_count, sizeof(uint32_t), map_bytes) ||
	    !part_fits(header->chunks_offset, header->chunk_count, header->chunk_bytes, map_bytes))
		return -EINVAL;
	*ret_producer = (struct mt_producer){
		.header = header,
		.procs = (struct mt_proc_slot *)(base + header->procs_offset),
		.threads = (struct mt_thread_slot *)(base + header->threads_offset),
		.links = (uint32_t *)(base + header->links_offset),
		.chunks = base + header->chunks_offset,
		.chunk_bytes = header->chunk_bytes,
		.chunk_count = header->chunk_count,
		.proc_count = header->proc_count,
		.thread_count = header->thread_count,
		.policy = header->policy,
		.max_wait_ms = header->max_wait_ms,
	};
	return 0;
}

/*
 * Takes the top of a free list whose heads are {tag, index + 1}. `links` is the first link, the
 * others follow at `stride` bytes. A link may be stale when we read it, since another producer can
 * take the entry at any time; the tag then makes the exchange fail. Returns index + 1 or 0.
 */
static uint32_t pop(uint64_t *head_word, const void *links, size_t stride, uint32_t count)
{
	uint64_t head = mt_load_acquire(head_word);

	for (;;) {
		uint32_t top = (uint32_t)head;
		const uint32_t *link;
		uint64_t next;

		if (top == 0 || top > count)
			return 0;
		link = (const uint32_t *)((const char *)links + (size_t)(top - 1) * stride);
		next = ((head >> 32) + 1) << 32 | mt_load_relaxed(link);
		if (mt_cas_acq_rel(head_word, &head, next))
			return top;
	}
}

/* Takes an entry that was never used, below `limit`. Returns index + 1 or 0. */
static uint32_t bump(uint32_t *word, uint32_t limit)
{
	uint32_t used = mt_load_relaxed(word);

	while (used < limit) {
		if (mt_cas_acq_rel(word, &used, used + 1))
			return used + 1;
	}
	return 0;
}

uint32_t mt_producer_claim_proc(const struct mt_producer *producer,
				const struct mt_proc_birth *birth)
{
	struct mt_shm_header *header = producer->header;
	struct mt_proc_slot *slot;
	uint32_t taken;
	int i;

	taken = pop(&header->proc_free_head, &producer->procs->next_free, sizeof(*slot),
		    producer->proc_count);
	if (taken == 0)
		taken = bump(&header->proc_bump, producer->proc_count);
	if (taken == 0)
		return 0;
	slot = &producer->procs[taken - 1];
	slot->parent = birth->parent;
	slot->parent_generation = birth->parent_generation;
	slot->pid = birth->pid;
	slot->tid = birth->tid;
	slot->fork_number = birth->fork_number;
	slot->claim_stamp = birth->stamp;
	slot->generation++;
	for (i = 0; i < MT_LOST_CAUSES; i++)
		mt_store_relaxed(&slot->lost[i], 0);
	mt_store_release(&slot->state, MT_SLOT_ACTIVE);
	return taken;
}

bool mt_writer_claim(const struct mt_producer *producer, struct mt_writer *writer, uint32_t proc,
		     int32_t tid, uint64_t tcb, uint64_t stamp)
{
	struct mt_shm_header *header = producer->header;
	struct mt_thread_slot *slot;
	uint32_t taken;
	int i;

	*writer = (struct mt_writer){ .proc = proc };
	taken = pop(&header->thread_free_head, &producer->threads->next_free, sizeof(*slot),
		    producer->thread_count);
	if (taken == 0)
		taken = bump(&header->thread_bump, producer->thread_count);
	if (taken == 0)
		return false;
	slot = &producer->threads[taken - 1];
	slot->proc = proc - 1;
	slot->tid = tid;
	slot->tcb = tcb;
	slot->claim_stamp = stamp;
	slot->generation++;
	mt_store_relaxed(&slot->first_chunk, 0);
	for (i = 0; i < MT_LOST_CAUSES; i++)
		mt_store_relaxed(&slot->lost[i], 0);
	mt_store_release(&slot->state, MT_SLOT_ACTIVE);
	writer->slot = taken;
	return true;
}

/* Returns a chunk's index + 1, or 0 when there is none now. */
static uint32_t take_chunk(const struct mt_producer *producer)
{
	struct mt_shm_header *header = producer->header;
	uint32_t limit = mt_load_acquire(&header->limit);
	uint32_t taken;

	taken = pop(&header->free_head, producer->links, sizeof(uint32_t), producer->chunk_count);
	if (taken != 0)
		return taken;
	if (limit > producer->chunk_count)
		limit = producer->chunk_count;
	return bump(&header->bump, limit);
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Sleeps until `wake` differs from `seen`, but not longer than a slice. */
static void wait_slice(const struct mt_producer *producer, uint32_t seen)
{
	struct mt_shm_header *header = producer->header;
	struct timespec slice = { .tv_sec = 0, .tv_nsec = SLICE_NS };
	int i;

	if (mt_load_relaxed(&producer->no_syscalls) == 0) {
		/* Not FUTEX_PRIVATE: the waker is another process. */
		(void)mt_syscall4(SYS_futex, (long)&header->wake, FUTEX_WAIT, (long)seen,
				  (long)&slice); /* every result means: look again */
		return;
	}
	for (i = 0; i < SPIN_TURNS && mt_load_relaxed(&header->wake) == seen; i++)
		pause_cpu();
}

static bool sidecar_is_dead(const struct mt_shm_header *header)
{
	return (mt_load_acquire(&header->alive) & FUTEX_OWNER_DIED) != 0;
}

/* Has the heartbeat rested for the longest wait, in the `waited_ns` that we saw, or before too? */
static bool is_at_rest(const struct mt_producer *producer, uint64_t now_ns, uint64_t waited_ns)
{
	uint64_t limit_ns = (uint64_t)producer->max_wait_ms * 1000000u;
	uint64_t beat_ns = mt_load_relaxed(&producer->header->beat_ns);
	uint64_t age_ns = beat_ns != 0 && now_ns > beat_ns ? now_ns - beat_ns : 0;

	if (waited_ns >= limit_ns)
		return true;
	return waited_ns >= LOOK_NS && age_ns >= limit_ns && age_ns < OLDEST_NS;
}

/*
 * Waits until there is a chunk. The wait goes on while the heartbeat moves; after max_wait_ms
 * without a move, or when waiting is known to be in vain, drop is latched for everybody until it
 * moves again.
 */
static uint32_t wait_for_chunk(const struct mt_producer *producer)
{
	struct mt_shm_header *header = producer->header;
	uint64_t heartbeat = mt_load_acquire(&header->heartbeat);
	uint64_t since_ns = producer->now_ns();
	uint32_t taken = 0;

	if (mt_load_relaxed(&header->drop_latch) == heartbeat + 1)
		return 0;
	(void)mt_add_acq_rel(&header->waiters, 1); /* the count itself is of no use here */
	for (;;) {
		uint32_t seen = mt_load_acquire(&header->wake);
		uint64_t beat, now_ns;

		taken = take_chunk(producer);
		if (taken != 0 || mt_load_acquire(&header->closed) != 0)
			break;
		beat = mt_load_acquire(&header->heartbeat);
		now_ns = producer->now_ns();
		if (beat != heartbeat) {
			heartbeat = beat;
			since_ns = now_ns;
		}
		if (sidecar_is_dead(header) || mt_load_acquire(&header->starved) != 0 ||
		    is_at_rest(producer, now_ns, now_ns - since_ns)) {
			mt_store_release(&header->drop_latch, heartbeat + 1);
			break;
		}
		wait_slice(producer, seen);
	}
	(void)mt_sub_acq_rel(&header->waiters, 1);
	return taken;
}

int mt_writer_turn_over(const struct mt_producer *producer, struct mt_writer *writer)
{
	struct mt_shm_header *header = producer->header;
	struct mt_chunk *chunk;
	uint32_t taken;
	size_t room;

	if (mt_load_acquire(&header->closed) != 0)
		return MT_TURN_CLOSED;
	taken = take_chunk(producer);
	if (taken == 0) {
		if (producer->policy != MT_POLICY_BLOCK)
			return MT_TURN_LOST + MT_LOST_POLICY;
		taken = wait_for_chunk(producer);
	}
	if (taken == 0)
		return mt_load_acquire(&header->closed) != 0 ? MT_TURN_CLOSED
							     : MT_TURN_LOST + MT_LOST_TIMEOUT;
	chunk = (struct mt_chunk *)(producer->chunks + (size_t)(taken - 1) * producer->chunk_bytes);
	chunk->owner = writer->slot - 1;
	mt_store_relaxed(&chunk->next, 0);
	mt_store_relaxed(&chunk->used_bytes, (uint32_t)sizeof(*chunk));
	/* Pairs with the consumer's acquire of the same word: the chunk's header is set. */
	if (writer->chunk != NULL)
		mt_store_release(&writer->chunk->next, taken);
	else
		mt_store_release(&producer->threads[writer->slot - 1].first_chunk, taken);
	room = (producer->chunk_bytes - sizeof(*chunk)) / sizeof(struct mt_rec);
	writer->chunk = chunk;
	writer->next = chunk->records;
	writer->end = chunk->records + room;
	return 0;
}

void mt_writer_lost(const struct mt_producer *producer, const struct mt_writer *writer,
		    enum mt_lost cause)
{
	if (writer->slot != 0) {
		uint64_t *count = &producer->threads[writer->slot - 1].lost[cause];

		/* Only this thread writes it, so the add needs no lock. */
		mt_store_relaxed(count, mt_load_relaxed(count) + 1);
	} else if (writer->proc != 0) {
		(void)mt_add_relaxed(&producer->procs[writer->proc - 1].lost[cause], 1);
	} else {
		(void)mt_add_relaxed(&producer->header->lost[cause], 1);
	}
}
