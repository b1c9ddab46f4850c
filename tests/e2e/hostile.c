/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hostile HOW SECONDS [PID...]: a tracked program that attacks the memory it shares with the
 * sidecar, while it records. A child, which has the mapping by inheritance, writes into it all the
 * time; the program itself allocates until its own records or its own crash end that.
 *
 *   random   any value into any word
 *   chosen   values that pass for good ones: numbers of slots and chunks, states, lengths, counter
 *            readings, and the numbers of other processes (PID...)
 *   flip     two values in turn into each field, faster than anybody can look twice
 *   claims   every slot there is, claimed at once, by numbers that nobody has
 *   list     chunks linked in circles and into other threads' lists
 *   twice    children that claim a second slot each under their own number, and end
 *   counts   lost records, as many as there are numbers: the counts of two causes add up to 0
 *   once     one stray write, into the chunk that it records to; then it only records, a lot
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/chunk.h"
#include "common/clock.h"

#define PLAYED_SLOTS  64
#define PLAYED_CHUNKS 64

static struct mt_shm_header *header;
static uint64_t seed = 88172645463325252;
static int32_t victims[16];
static int victim_count;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static bool find_segment(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned long from;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "memfd:memtrack") || sscanf(line, "%lx-", &from) != 1)
			continue;
		header = (struct mt_shm_header *)from;
		break;
	}
	if (maps)
		fclose(maps);
	return header && header->magic == MT_SHM_MAGIC;
}

static struct mt_thread_slot *thread_slot(uint64_t index)
{
	return (struct mt_thread_slot *)((char *)header + header->threads_offset) + index;
}

static struct mt_proc_slot *proc_slot(uint64_t index)
{
	return (struct mt_proc_slot *)((char *)header + header->procs_offset) + index;
}

static struct mt_chunk *chunk_at(uint64_t index)
{
	return (struct mt_chunk *)((char *)header + header->chunks_offset +
				   index * header->chunk_bytes);
}

static uint32_t *links(void)
{
	return (uint32_t *)((char *)header + header->links_offset);
}

/* A counter that passes for a thread's: now, a little before, or a little later. */
static uint64_t some_stamp(void)
{
	uint64_t now = mt_clock_read((enum mt_counter)header->counter);

	switch (next_random() % 4) {
	case 0:
		return now + next_random() % 10000000;
	case 1:
		return now - next_random() % 10000000;
	case 2:
		return next_random();
	default:
		return now;
	}
}

static int32_t some_pid(void)
{
	uint64_t which = next_random() % 4;

	if (which == 0 || victim_count == 0)
		return (int32_t)next_random();
	if (which == 1)
		return getppid();
	return victims[next_random() % (uint64_t)victim_count];
}

static void *some_part(size_t *ret_bytes)
{
	switch (next_random() % 5) {
	case 0: /* all that is not constant: the shim itself needs the rest */
		*ret_bytes = sizeof(*header) - offsetof(struct mt_shm_header, heartbeat);
		return &header->heartbeat;
	case 1:
		*ret_bytes = sizeof(struct mt_proc_slot);
		return proc_slot(next_random() % PLAYED_SLOTS);
	case 2:
		*ret_bytes = sizeof(struct mt_thread_slot);
		return thread_slot(next_random() % PLAYED_SLOTS);
	case 3:
		*ret_bytes = PLAYED_CHUNKS * sizeof(uint32_t);
		return links();
	default:
		*ret_bytes = header->chunk_bytes;
		return chunk_at(next_random() % PLAYED_CHUNKS);
	}
}

static void write_random(void)
{
	size_t bytes, at;
	char *part = some_part(&bytes);
	uint64_t value = next_random();

	at = next_random() % (bytes / 4) * 4;
	if (value & 1)
		value >>= next_random() % 64;
	atomic_store_explicit((_Atomic uint32_t *)(part + at), (uint32_t)value,
			      memory_order_relaxed);
}

static void write_thread(struct mt_thread_slot *slot)
{
	slot->proc = (uint32_t)(next_random() % PLAYED_SLOTS);
	slot->tid = some_pid();
	slot->tcb = next_random() % 4 ? next_random() : 0;
	slot->first_chunk = (uint32_t)(next_random() % (PLAYED_CHUNKS + 1));
	slot->claim_stamp = some_stamp();
	slot->lost[next_random() % 8] = next_random() % 16;
	atomic_store((_Atomic uint32_t *)&slot->state, MT_SLOT_ACTIVE);
}

static void write_proc(struct mt_proc_slot *slot)
{
	slot->pid = some_pid();
	slot->tid = slot->pid;
	slot->parent = (uint32_t)(next_random() % PLAYED_SLOTS);
	slot->parent_generation = (uint32_t)(next_random() % 4);
	slot->fork_number = next_random() % 4;
	slot->claim_stamp = some_stamp();
	atomic_store((_Atomic uint32_t *)&slot->state, MT_SLOT_ACTIVE);
}

static void write_chunk(struct mt_chunk *chunk)
{
	unsigned count = 1 + (unsigned)(next_random() % 8);
	struct mt_rec *rec;

	for (unsigned i = 0; i < count; i++) {
		rec = &chunk->records[i];
		rec->stamp = some_stamp();
		rec->addr = next_random() % 1024 * 16;
		rec->size_kind = (next_random() % 4 ? next_random() % 4096 : (uint32_t)some_pid())
					 << 8 |
				 next_random() % (MT_REC_KINDS + 1);
	}
	chunk->next = next_random() % 4 ? 0 : (uint32_t)(next_random() % PLAYED_CHUNKS);
	atomic_store((_Atomic uint32_t *)&chunk->used_bytes,
		     (uint32_t)(sizeof(*chunk) + count * sizeof(*rec)));
}

static void write_chosen(void)
{
	switch (next_random() % 4) {
	case 0:
		write_thread(thread_slot(next_random() % PLAYED_SLOTS));
		header->thread_bump = (uint32_t)(next_random() % (2 * PLAYED_SLOTS));
		header->thread_free_head += UINT64_C(1) << 32;
		break;
	case 1:
		write_proc(proc_slot(next_random() % PLAYED_SLOTS));
		header->proc_bump = (uint32_t)(next_random() % (2 * PLAYED_SLOTS));
		header->proc_free_head += UINT64_C(1) << 32;
		break;
	case 2:
		write_chunk(chunk_at(next_random() % PLAYED_CHUNKS));
		break;
	case 3:
		header->waiters = (uint32_t)(next_random() % 3);
		header->bump = (uint32_t)next_random();
		break;
	}
}

static void write_flip(void)
{
	size_t bytes;
	uint64_t a = next_random(), b = next_random() % 2 ? ~a : 0;
	char *part = some_part(&bytes);
	_Atomic uint32_t *word =
		(_Atomic uint32_t *)(part + next_random() % ((bytes < 192 ? bytes : 192) / 4) * 4);

	for (int i = 0; i < 1000; i++)
		atomic_store_explicit(word, (uint32_t)(i & 1 ? a : b), memory_order_relaxed);
	/* The word may have been the length or the stamp of a good record: make one again. */
	write_chosen();
}

static void write_claims(void)
{
	for (uint32_t i = 1; i < header->proc_count; i++)
		write_proc(proc_slot(i));
	for (uint32_t i = 1; i < header->thread_count; i++) {
		thread_slot(i)->tid = (int32_t)i;
		thread_slot(i)->proc = (uint32_t)(i % 3 ? 0 : i % header->proc_count);
		atomic_store((_Atomic uint32_t *)&thread_slot(i)->state, MT_SLOT_ACTIVE);
	}
	header->proc_bump = header->proc_count;
	header->thread_bump = header->thread_count;
}

static void write_list(void)
{
	struct mt_chunk *chunk = chunk_at(next_random() % PLAYED_CHUNKS);

	chunk->used_bytes = (uint32_t)(sizeof(*chunk) + 24 * (next_random() % 8));
	chunk->next = (uint32_t)(1 + next_random() % PLAYED_CHUNKS);
	thread_slot(next_random() % 8)->first_chunk = (uint32_t)(1 + next_random() % PLAYED_CHUNKS);
	links()[next_random() % PLAYED_CHUNKS] = (uint32_t)(1 + next_random() % PLAYED_CHUNKS);
	header->free_head = next_random() << 32 | (1 + next_random() % PLAYED_CHUNKS);
}

static void write_twice(void)
{
	pid_t child = fork();
	uint32_t index;

	if (child == 0) {
		free(malloc(1)); /* has a slot of its own now */
		index = atomic_fetch_add((_Atomic uint32_t *)&header->proc_bump, 1);
		if (index >= header->proc_count)
			_exit(0);
		proc_slot(index)->pid = proc_slot(index)->tid = getpid();
		proc_slot(index)->parent = 1;
		proc_slot(index)->claim_stamp = mt_clock_read(header->counter);
		atomic_store((_Atomic uint32_t *)&proc_slot(index)->state, MT_SLOT_ACTIVE);
		usleep(2000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static const struct attack {
	const char *name;
	void (*write)(void);
} attacks[] = {
	{ "random", write_random }, { "chosen", write_chosen }, { "flip", write_flip },
	{ "claims", write_claims }, { "list", write_list },	{ "twice", write_twice },
};

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void attack(void (*write)(void), double seconds)
{
	double end = seconds_now() + seconds;

	while (seconds_now() < end)
		for (int i = 0; i < (write == write_claims || write == write_twice ? 1 : 100); i++)
			write();
	_exit(0);
}

static void record_one(void)
{
	void *volatile block = malloc(next_random() % 1000);

	free(block);
}

/* What is attacked: the records of this very program. Its crash would be its own affair. */
static void record(pid_t writer)
{
	signal(SIGSEGV, SIG_DFL);
	while (waitpid(writer, NULL, WNOHANG) == 0)
		record_one();
}

/* More than all buffers hold: with a stream that nobody reads any more it must not wait for ever.
 */
static int damage_once(void)
{
	if (!find_segment())
		return 3;
	chunk_at(thread_slot(0)->first_chunk - 1)->used_bytes = 1;
	usleep(200000); /* it is seen */
	for (int i = 0; i < 8000000; i++)
		record_one();
	return 0;
}

static int count_round(void)
{
	if (!find_segment())
		return 3;
	header->lost[0] += UINT64_C(1) << 63;
	header->lost[1] += UINT64_C(1) << 63;
	return 0;
}

int main(int argc, char **argv)
{
	const struct attack *found = NULL;
	double seconds;
	pid_t writer;

	if (argc >= 2 && !strcmp(argv[1], "once"))
		return damage_once();
	if (argc >= 2 && !strcmp(argv[1], "counts"))
		return count_round();
	for (size_t i = 0; argc >= 3 && i < sizeof(attacks) / sizeof(*attacks); i++)
		if (!strcmp(argv[1], attacks[i].name))
			found = &attacks[i];
	if (!found)
		return 2;
	seconds = atof(argv[2]);
	for (int i = 3; i < argc && victim_count < 16; i++)
		victims[victim_count++] = (int32_t)atoi(argv[i]);
	free(malloc(1)); /* whatever meets the sidecar late has met it now */
	if (!find_segment()) {
		fprintf(stderr, "hostile: no shared memory was found\n");
		return 3;
	}
	/* With the free chunks spoiled, recording may wait for ever for one: its own affair too. */
	alarm((unsigned)seconds + 2);
	writer = fork();
	if (writer == 0)
		attack(found->write, seconds);
	record(writer);
	return 0;
}
