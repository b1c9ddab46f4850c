/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/chunk_consumer.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/pages.h"

/* Who fails to push this often races with somebody who does nothing else: the chunk is let go. */
#define PUSH_TRIES 100000

/* Rounds in a window, and the share that one window has in the average over them. */
#define REST_WINDOW 16u
#define REST_SHARE  16u

static size_t notes_bytes(const struct mt_shm *shm)
{
	return shm->layout.chunk_count * sizeof(struct mt_chunk_note);
}

int mt_consumer_init(struct mt_consumer *consumer, const struct mt_shm *shm)
{
	memset(consumer, 0, sizeof(*consumer));
	consumer->notes = mt_pages_new(notes_bytes(shm));
	if (!consumer->notes)
		return -ENOMEM;
	consumer->shm = *shm;
	consumer->limit = shm->layout.limit;
	mt_consumer_look_at(consumer, UINT32_MAX);
	return 0;
}

void mt_consumer_look_at(struct mt_consumer *consumer, uint32_t most)
{
	const struct mt_shm_header *layout = &consumer->shm.layout;

	consumer->threads.most = most < layout->thread_count ? most : layout->thread_count;
	consumer->procs.most = most < layout->proc_count ? most : layout->proc_count;
}

void mt_consumer_fini(struct mt_consumer *consumer)
{
	mt_pages_free(consumer->notes, notes_bytes(&consumer->shm));
	free(consumer->threads.idle);
	free(consumer->procs.idle);
	mt_shm_destroy(&consumer->shm);
	memset(consumer, 0, sizeof(*consumer));
	consumer->shm.fd = -1;
}

static bool reserve_idle(struct mt_slot_scan *scan, uint32_t count)
{
	uint32_t space = scan->idle_space ? scan->idle_space : 64;
	uint32_t *idle;

	if (count <= scan->idle_space)
		return true;
	while (space < count)
		space *= 2;
	idle = realloc(scan->idle, space * sizeof(*idle));
	if (!idle)
		return false;
	scan->idle = idle;
	scan->idle_space = space;
	return true;
}

/*
 * A sweep over the idle slots is needed only while claims are under way: slots that bump handed out
 * since, and pops of the free list (each change of its head adds 1 to the tag; ours are known).
 */
/* False: no memory for all; what is not found is there for the next look. */
static bool scan_look(struct mt_slot_scan *scan, uint32_t bump, uint64_t head)
{
	uint32_t tag = (uint32_t)(head >> 32);
	uint32_t pops = tag - scan->tag - scan->pushes;
	bool complete = true;

	if (bump > scan->most)
		bump = scan->most;
	scan->tag = tag;
	scan->pushes = 0;
	if (pops > scan->idle_count)
		pops = scan->idle_count;
	scan->expected += pops;
	if (bump > scan->bump)
		complete = reserve_idle(scan, scan->idle_count + bump - scan->bump);
	scan->unfound = complete ? 0 : bump - scan->bump;
	if (bump > scan->bump && complete) {
		scan->expected += bump - scan->bump;
		while (scan->bump < bump)
			scan->idle[scan->idle_count++] = scan->bump++;
	}
	if (scan->expected > scan->idle_count)
		scan->expected = scan->idle_count;
	scan->took = false;
	return complete;
}

static void scan_take(struct mt_slot_scan *scan)
{
	scan->idle[scan->at] = scan->idle[--scan->idle_count];
	if (scan->expected > 0)
		scan->expected--;
	scan->took = true;
}

static bool look_at_threads(struct mt_consumer *consumer)
{
	struct mt_shm_header *header = consumer->shm.header;

	return scan_look(&consumer->threads, mt_load_acquire(&header->thread_bump),
			 mt_load_acquire(&header->thread_free_head));
}

static bool look_at_procs(struct mt_consumer *consumer)
{
	struct mt_shm_header *header = consumer->shm.header;

	return scan_look(&consumer->procs, mt_load_acquire(&header->proc_bump),
			 mt_load_acquire(&header->proc_free_head));
}

/*
 * Does the sweep go on? A claim that was made during it may have been taken in the place of an
 * older one that lies further on: the sweep is over when nothing is expected that was claimed by
 * now.
 */
static bool scan_goes_on(struct mt_consumer *consumer, struct mt_slot_scan *scan,
			 bool (*look)(struct mt_consumer *consumer))
{
	if (scan->expected == 0 && scan->took)
		(void)look(consumer); /* what that misses, the next scan finds */
	return scan->expected > 0 && scan->at < scan->idle_count;
}

bool mt_consumer_scan_threads(struct mt_consumer *consumer)
{
	consumer->threads.at = 0;
	return look_at_threads(consumer);
}

bool mt_consumer_scan_procs(struct mt_consumer *consumer)
{
	consumer->procs.at = 0;
	return look_at_procs(consumer);
}

bool mt_consumer_next_thread(struct mt_consumer *consumer, struct mt_thread_claim *ret_claim)
{
	struct mt_slot_scan *scan = &consumer->threads;

	for (; scan_goes_on(consumer, scan, look_at_threads); scan->at++) {
		struct mt_thread_slot *slot = mt_shm_thread(&consumer->shm, scan->idle[scan->at]);

		if (mt_load_acquire(&slot->state) != MT_SLOT_ACTIVE)
			continue;
		ret_claim->slot = scan->idle[scan->at];
		ret_claim->proc = mt_load_relaxed(&slot->proc);
		ret_claim->generation = mt_load_relaxed(&slot->generation);
		ret_claim->tid = mt_load_relaxed(&slot->tid);
		ret_claim->tcb = mt_load_relaxed(&slot->tcb);
		ret_claim->claim_stamp = mt_load_relaxed(&slot->claim_stamp);
		scan_take(scan);
		return true;
	}
	return false;
}

bool mt_consumer_next_proc(struct mt_consumer *consumer, struct mt_proc_claim *ret_claim)
{
	struct mt_slot_scan *scan = &consumer->procs;

	for (; scan_goes_on(consumer, scan, look_at_procs); scan->at++) {
		struct mt_proc_slot *slot = mt_shm_proc(&consumer->shm, scan->idle[scan->at]);

		if (mt_load_acquire(&slot->state) != MT_SLOT_ACTIVE)
			continue;
		ret_claim->slot = scan->idle[scan->at];
		ret_claim->generation = mt_load_relaxed(&slot->generation);
		ret_claim->parent = mt_load_relaxed(&slot->parent);
		ret_claim->parent_generation = mt_load_relaxed(&slot->parent_generation);
		ret_claim->pid = mt_load_relaxed(&slot->pid);
		ret_claim->tid = mt_load_relaxed(&slot->tid);
		ret_claim->fork_number = mt_load_relaxed(&slot->fork_number);
		ret_claim->claim_stamp = mt_load_relaxed(&slot->claim_stamp);
		scan_take(scan);
		return true;
	}
	return false;
}

void mt_stream_init(struct mt_stream *stream, uint32_t slot)
{
	memset(stream, 0, sizeof(*stream));
	stream->slot = slot;
	stream->chunk = MT_NO_CHUNK;
	stream->tail = MT_NO_CHUNK;
}

/* Puts an index on a LIFO list {tag, index + 1}; link is where the index below it is kept. */
static bool push(uint64_t *head, uint32_t *link, uint32_t index)
{
	uint64_t old = mt_load_acquire(head);

	for (int i = 0; i < PUSH_TRIES; i++) {
		uint64_t tag = (old >> 32) + 1;

		mt_store_relaxed(link, (uint32_t)old);
		/* Releases the link; a producer's pop acquires it with the head. */
		if (mt_cas_acq_rel(head, &old, tag << 32 | (index + 1)))
			return true;
	}
	return false;
}

static void give_back(struct mt_consumer *consumer, uint32_t index)
{
	/* A lost chunk is one fewer for a program that fights over the head: nothing to report. */
	(void)push(&consumer->shm.header->free_head, &mt_shm_links(&consumer->shm)[index], index);
	consumer->given_back++;
	consumer->unheard_of++;
}

static void take_out(struct mt_consumer *consumer, uint32_t index)
{
	consumer->notes[index] = (struct mt_chunk_note){ 0, 0, 0 };
	consumer->in_lists--;
}

/*
 * Full chunks rest before they are given back. Who writes into lines that another processor has
 * just read waits for them to be taken away from it, which can double what recording costs; after
 * some MiB of other chunks they are in neither's own cache. As many rest as were read in a window
 * of rounds, on average, so a program that records little gets its few chunks back at once and
 * touches no others; and no more than half of those that are free.
 */
static uint32_t rests_wanted(const struct mt_consumer *consumer)
{
	uint32_t most = mt_consumer_free_chunks(consumer) / 2, wanted = consumer->pace / REST_SHARE;

	/* What rests cannot be had at once, and nobody waits. */
	if (consumer->shm.layout.policy == MT_POLICY_DROP)
		return 0;
	if (most > MT_RESTING_MAX - 1)
		most = MT_RESTING_MAX - 1;
	return wanted < most ? wanted : most;
}

static void end_rests(struct mt_consumer *consumer, uint32_t keep)
{
	while (consumer->rest_end - consumer->rest_begin > keep)
		give_back(consumer, consumer->resting[consumer->rest_begin++ % MT_RESTING_MAX]);
}

static void rest(struct mt_consumer *consumer, uint32_t index)
{
	take_out(consumer, index);
	consumer->read_chunks++;
	consumer->resting[consumer->rest_end++ % MT_RESTING_MAX] = index;
	end_rests(consumer, rests_wanted(consumer));
}

static void keep_pace(struct mt_consumer *consumer)
{
	if (++consumer->rounds % REST_WINDOW != 0)
		return;
	consumer->pace -= consumer->pace / REST_SHARE;
	consumer->pace += consumer->read_chunks;
	consumer->read_chunks = 0;
}

/* Puts the chunk numbered `number` (index + 1) behind the stream's tail. */
static int take_chunk(struct mt_consumer *consumer, struct mt_stream *stream, uint32_t number)
{
	struct mt_chunk_note *note;

	if (number > consumer->shm.layout.chunk_count)
		return -EPROTO;
	note = &consumer->notes[number - 1];
	if (note->taken)
		return -EPROTO;
	note->taken = 1;
	note->next = 0;
	note->used_bytes = sizeof(struct mt_chunk);
	consumer->in_lists++;
	if (stream->tail == MT_NO_CHUNK) {
		const struct mt_chunk *chunk = mt_shm_chunk(&consumer->shm, number - 1);

		stream->chunk = number - 1;
		stream->read = chunk->records;
		stream->end = chunk->records;
	} else {
		consumer->notes[stream->tail].next = number;
	}
	stream->tail = number - 1;
	return 0;
}

static int note_used(struct mt_consumer *consumer, struct mt_stream *stream, uint32_t used)
{
	struct mt_chunk_note *note = &consumer->notes[stream->tail];

	if (used == note->used_bytes)
		return 0;
	if (used < note->used_bytes || used > consumer->shm.layout.chunk_bytes ||
	    (used - sizeof(struct mt_chunk)) % sizeof(struct mt_rec) != 0)
		return -EPROTO;
	stream->seen += (used - note->used_bytes) / sizeof(struct mt_rec);
	note->used_bytes = used;
	return 0;
}

static const struct mt_rec *noted_end(const struct mt_consumer *consumer, uint32_t index)
{
	return (const struct mt_rec *)((const char *)mt_shm_chunk(&consumer->shm, index) +
				       consumer->notes[index].used_bytes);
}

/* Moves over chunks that are read and full. The stream then stands at a record, or at its end. */
static void skip_read_chunks(struct mt_consumer *consumer, struct mt_stream *stream)
{
	while (stream->chunk != MT_NO_CHUNK) {
		uint32_t next = consumer->notes[stream->chunk].next;

		stream->end = noted_end(consumer, stream->chunk);
		if (stream->read != stream->end || next == 0)
			return;
		rest(consumer, stream->chunk);
		stream->chunk = next - 1;
		stream->read = mt_shm_chunk(&consumer->shm, stream->chunk)->records;
	}
}

static int note_chunks(struct mt_consumer *consumer, struct mt_stream *stream)
{
	uint32_t number;
	int ret;

	if (stream->tail == MT_NO_CHUNK) {
		number = mt_load_acquire(&mt_shm_thread(&consumer->shm, stream->slot)->first_chunk);
		if (number == 0)
			return 0;
		ret = take_chunk(consumer, stream, number);
		if (ret < 0)
			return ret;
	}
	/* Each step takes a chunk that was in no list, so the loop ends. */
	for (;;) {
		struct mt_chunk *chunk = mt_shm_chunk(&consumer->shm, stream->tail);

		/* next first: when it is set, the length read behind it is final. */
		number = mt_load_acquire(&chunk->next);
		ret = note_used(consumer, stream, mt_load_acquire(&chunk->used_bytes));
		if (ret < 0 || number == 0)
			return ret;
		ret = take_chunk(consumer, stream, number);
		if (ret < 0)
			return ret;
	}
}

int mt_stream_note(struct mt_consumer *consumer, struct mt_stream *stream)
{
	int ret;

	stream->covered = stream->seen;
	if (stream->stopped)
		return 0;
	ret = note_chunks(consumer, stream);
	if (ret < 0) {
		/* What was noted before it went wrong is still read. */
		stream->stopped = true;
	}
	skip_read_chunks(consumer, stream);
	return ret;
}

void mt_stream_advance(struct mt_consumer *consumer, struct mt_stream *stream)
{
	skip_read_chunks(consumer, stream);
}

static void add_lost(const uint64_t *counters, uint64_t *lost)
{
	for (unsigned i = 0; i < MT_LOST_CAUSES; i++)
		lost[i] += mt_load_relaxed(&counters[i]);
}

void mt_consumer_thread_lost(const struct mt_consumer *consumer, uint32_t slot, uint64_t *lost)
{
	add_lost(mt_shm_thread(&consumer->shm, slot)->lost, lost);
}

void mt_consumer_proc_lost(const struct mt_consumer *consumer, uint32_t slot, uint64_t *lost)
{
	add_lost(mt_shm_proc(&consumer->shm, slot)->lost, lost);
}

void mt_consumer_image_lost(const struct mt_consumer *consumer, uint64_t *lost)
{
	add_lost(consumer->shm.header->lost, lost);
}

uint32_t mt_consumer_past_us(const struct mt_consumer *consumer)
{
	return mt_load_relaxed(&consumer->shm.header->past_us) &
	       (MT_PAST_DEEPBIND | MT_PAST_DLMOPEN);
}

void mt_consumer_retire_thread(struct mt_consumer *consumer, struct mt_stream *stream)
{
	struct mt_thread_slot *slot = mt_shm_thread(&consumer->shm, stream->slot);
	uint32_t index = stream->chunk;

	/* A stopped stream's chunks may be in other hands too: they stay out of use. */
	while (!stream->stopped && index != MT_NO_CHUNK) {
		uint32_t next = consumer->notes[index].next;

		take_out(consumer, index);
		give_back(consumer, index);
		index = next ? next - 1 : MT_NO_CHUNK;
	}
	stream->chunk = MT_NO_CHUNK;
	stream->tail = MT_NO_CHUNK;
	mt_store_relaxed(&slot->first_chunk, 0);
	for (unsigned i = 0; i < MT_LOST_CAUSES; i++)
		mt_store_relaxed(&slot->lost[i], 0);
	if (!reserve_idle(&consumer->threads, consumer->threads.idle_count + 1))
		return; /* never seen again: one slot fewer */
	consumer->threads.idle[consumer->threads.idle_count++] = stream->slot;
	consumer->threads.pushes++;
	mt_store_release(&slot->state, MT_SLOT_FREE);
	(void)push(&consumer->shm.header->thread_free_head, &slot->next_free, stream->slot);
}

void mt_consumer_retire_proc(struct mt_consumer *consumer, uint32_t index)
{
	struct mt_proc_slot *slot = mt_shm_proc(&consumer->shm, index);

	for (unsigned i = 0; i < MT_LOST_CAUSES; i++)
		mt_store_relaxed(&slot->lost[i], 0);
	if (!reserve_idle(&consumer->procs, consumer->procs.idle_count + 1))
		return;
	consumer->procs.idle[consumer->procs.idle_count++] = index;
	consumer->procs.pushes++;
	mt_store_release(&slot->state, MT_SLOT_FREE);
	(void)push(&consumer->shm.header->proc_free_head, &slot->next_free, index);
}

uint32_t mt_consumer_free_chunks(const struct mt_consumer *consumer)
{
	return consumer->limit > consumer->in_lists ? consumer->limit - consumer->in_lists : 0;
}

uint32_t mt_consumer_waiters(const struct mt_consumer *consumer)
{
	return mt_load_acquire(&consumer->shm.header->waiters);
}

void mt_consumer_set_limit(struct mt_consumer *consumer, uint32_t limit)
{
	if (limit > consumer->shm.layout.chunk_count)
		limit = consumer->shm.layout.chunk_count;
	if (limit > consumer->limit) {
		consumer->given_back += limit - consumer->limit;
		consumer->unheard_of += limit - consumer->limit;
	}
	consumer->limit = limit;
	mt_store_release(&consumer->shm.header->limit, limit);
}

static void beat(struct mt_consumer *consumer, uint64_t now_ns)
{
	mt_store_relaxed(&consumer->shm.header->beat_ns, now_ns);
	mt_store_release(&consumer->shm.header->heartbeat, ++consumer->heartbeat);
}

/*
 * Wakes one waiter for each chunk that it may have. When somebody else was quicker, the one that
 * was woken waits again; those that sleep on find the next chunk, or look for themselves after a
 * slice.
 */
static void wake_waiters(struct mt_consumer *consumer)
{
	struct mt_shm_header *header = consumer->shm.header;
	int count = consumer->unheard_of < INT_MAX ? (int)consumer->unheard_of : INT_MAX;

	consumer->unheard_of = 0;
	if (consumer->starved)
		count = INT_MAX;
	if (count == 0 || mt_load_acquire(&header->waiters) == 0)
		return;
	mt_add_acq_rel(&header->wake, 1u);
	/* Shared futex; that nobody waited is no error. */
	(void)syscall(SYS_futex, &header->wake, FUTEX_WAKE, count, NULL, NULL, 0);
}

void mt_consumer_tend(struct mt_consumer *consumer, uint64_t now_ns, bool moves)
{
	if (moves)
		beat(consumer, now_ns);
	if (mt_load_acquire(&consumer->shm.header->waiters) == 0)
		return;
	end_rests(consumer, 0);
	wake_waiters(consumer);
}

void mt_consumer_settle(struct mt_consumer *consumer, uint64_t now_ns, bool starved)
{
	struct mt_shm_header *header = consumer->shm.header;

	beat(consumer, now_ns);
	keep_pace(consumer);
	end_rests(consumer, mt_load_acquire(&header->waiters) ? 0 : rests_wanted(consumer));
	if (starved != consumer->starved) {
		consumer->starved = starved;
		mt_store_release(&header->starved, starved);
	}
	wake_waiters(consumer);
	consumer->given_back = 0;
}

void mt_consumer_close(struct mt_consumer *consumer)
{
	mt_store_release(&consumer->shm.header->closed, 1u);
}
