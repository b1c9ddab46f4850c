/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * order_judge ARTIFACT [TRUTH]: replays an artifact and holds it against what `exchange` knows of
 * the true order (truth.h). Prints one line of NAME=NUMBER:
 *
 *   events          in the artifact
 *   contradictions  a block allocated while live, freed while dead, or time going back
 *   flagged         events that the recorder flagged
 *   lost            records that it says are lost
 *   out_of_place    numbered allocations that are not where they belong among those of their
 * address missing         numbered allocations that are not there invented        those that are
 * there and never were, or are there twice missing_frees   frees of numbered blocks that are not
 * there (negative: too many) swapped_frees   frees written as another thread's wrong_frees     of
 * blocks that were not the program's, as it says and of the recorder's own statistics: late parked
 * split inherited
 *
 * In a forked child the first allocation of each address tells where its count begins. The replay
 * is its own: it shares nothing with `memtrack verify`. Ends with 0 when it could judge.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/artifact_reader.h"
#include "common/run_meta.h"
#include "tests/e2e/truth.h"

#define PROCESSES 4096u /* buckets */

enum state {
	DEAD,
	LIVE,
	INHERITED, /* live, and nothing happened to it since the fork */
};

struct address {
	uint64_t addr; /* 0: the entry is free */
	uint64_t number;
	uint32_t count; /* numbered allocations so far; 0 in a child: not known */
	uint32_t state;
	int32_t tid; /* thread that allocated or freed it last */
};

struct process {
	struct process *next;
	int32_t pid;
	bool forked;
	size_t used, mask;
	struct address *table;
};

static struct {
	uint64_t events, contradictions, out_of_place, invented, swapped_frees;
	uint64_t seen, frees, handed;
	uint64_t last_ns;
} found;

static struct process *processes[PROCESSES];
static const struct truth *truth;
static uint64_t truth_entries;
static uint8_t *was_seen;

static void fail(const char *what)
{
	fprintf(stderr, "order_judge: %s\n", what);
	exit(2);
}

static void *zeroed(size_t count, size_t bytes)
{
	void *at = calloc(count, bytes);

	if (!at)
		fail("out of memory");
	return at;
}

static struct address *slot_of(const struct process *process, uint64_t addr)
{
	size_t at = (size_t)((addr * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & process->mask;

	while (process->table[at].addr && process->table[at].addr != addr)
		at = (at + 1) & process->mask;
	return &process->table[at];
}

static void empty_table(struct process *process)
{
	free(process->table);
	process->mask = 255;
	process->used = 0;
	process->table = zeroed(process->mask + 1, sizeof(*process->table));
}

static struct address *find(struct process *process, uint64_t addr)
{
	struct address *slot = slot_of(process, addr), *old = process->table;
	size_t entries = process->mask + 1;

	if (slot->addr)
		return slot;
	if (++process->used * 2 > entries) {
		process->mask = 2 * entries - 1;
		process->table = zeroed(2 * entries, sizeof(*old));
		for (size_t i = 0; i < entries; i++)
			if (old[i].addr)
				*slot_of(process, old[i].addr) = old[i];
		free(old);
		slot = slot_of(process, addr);
	}
	slot->addr = addr;
	return slot;
}

static struct process *process_of(int32_t pid)
{
	struct process **bucket = &processes[(uint32_t)pid % PROCESSES], *process = *bucket;

	while (process && process->pid != pid)
		process = process->next;
	if (process)
		return process;
	process = zeroed(1, sizeof(*process));
	process->pid = pid;
	process->next = *bucket;
	empty_table(process);
	*bucket = process;
	return process;
}

static void forked(const struct mt_event *event)
{
	const struct process *parent = process_of((int32_t)event->aux);
	struct process *child = process_of(event->pid);

	child->forked = true;
	child->used = parent->used;
	child->mask = parent->mask;
	free(child->table);
	child->table = zeroed(child->mask + 1, sizeof(*child->table));
	memcpy(child->table, parent->table, (child->mask + 1) * sizeof(*child->table));
	for (size_t i = 0; i <= child->mask; i++) {
		child->table[i].count = 0;
		if (child->table[i].state == LIVE)
			child->table[i].state = INHERITED;
	}
}

/* A numbered allocation: is it the one that is due? */
static void place(const struct process *process, struct address *address, uint64_t number)
{
	uint32_t due;

	if (number >= truth_entries || truth->entry[number].place == 0 || was_seen[number]) {
		found.invented++;
		return;
	}
	was_seen[number] = 1;
	found.seen++;
	due = truth->entry[number].place;
	if (process->forked && address->count == 0)
		address->count = due - 1;
	/* One that is out of place puts no others out. */
	found.out_of_place += ++address->count != due;
}

static void allocate(const struct mt_event *event)
{
	struct process *process = process_of(event->pid);
	struct address *address = find(process, event->addr);

	found.contradictions += address->state == LIVE;
	address->state = LIVE;
	address->number = 0;
	if (!truth || !truth_is_marked(event->size))
		return;
	address->number = truth_number(event->size);
	found.handed += address->tid != 0 && address->tid != event->tid;
	address->tid = event->tid;
	place(process, address, address->number);
}

static void release(const struct mt_event *event, uint64_t addr)
{
	struct address *address = find(process_of(event->pid), addr);

	if (address->state == DEAD) {
		found.contradictions++;
		found.frees++; /* a wrong one, or of a numbered block that is missing */
		return;
	}
	if (truth && address->number != 0) {
		found.frees++;
		found.handed += address->tid != event->tid;
		if (address->state == LIVE && address->number < truth_entries)
			found.swapped_frees += truth->entry[address->number].freer != event->tid;
	}
	address->state = DEAD;
	address->tid = event->tid;
}

static void judge(const struct mt_event *event)
{
	found.events++;
	found.contradictions += event->timestamp_ns < found.last_ns;
	found.last_ns = event->timestamp_ns;
	switch (event->type) {
	case MT_EVENT_REALLOC:
		if ((event->flags & MT_EVENT_HAS_OLD) && event->aux)
			release(event, event->aux);
		allocate(event);
		break;
	case MT_EVENT_MALLOC:
	case MT_EVENT_CALLOC:
	case MT_EVENT_ALIGNED_ALLOC:
		allocate(event);
		break;
	case MT_EVENT_FREE:
		release(event, event->addr);
		break;
	case MT_EVENT_FORK:
		forked(event);
		break;
	case MT_EVENT_EXEC:
	case MT_EVENT_EXIT:
		empty_table(process_of(event->pid));
		process_of(event->pid)->forked = false;
		break;
	}
}

static uint64_t sum(const struct mt_meta_value *map)
{
	struct mt_meta_iter it = mt_meta_iter(map);
	struct mt_meta_value value;
	struct mt_mp_object key;
	uint64_t all = 0;

	while (mt_meta_next(&it, &key, &value))
		if (value.object.type == MT_MP_UINT)
			all += value.object.u;
	return all;
}

/* The number in the last frame of that name, inside `group`; or the sum of the group. */
static uint64_t said(const struct mt_artifact_reader *reader, const char *frame, const char *group,
		     const char *key)
{
	struct mt_meta_value map, inner;
	uint64_t number = 0;

	for (size_t n = 0; mt_artifact_reader_meta(reader, frame, n, &map); n++) {
		if (!mt_meta_get(&map, group, &inner))
			continue;
		if (!key)
			number = sum(&inner);
		else if (!mt_meta_get_u64(&inner, key, &number))
			fail("a number is not in the metadata");
	}
	return number;
}

static void open_truth(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat) || (size_t)stat.st_size < sizeof(*truth))
		fail("the file with the truth cannot be read");
	truth = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		fail("the file with the truth cannot be mapped");
	close(fd);
	truth_entries = truth->next < truth->entries ? truth->next : truth->entries;
	was_seen = zeroed(truth_entries + 1, 1);
}

static void print(const struct mt_artifact_reader *reader)
{
	uint64_t used = 0, frees = truth ? truth->frees + truth->wrong_frees : found.frees;

	for (uint64_t i = 1; i < truth_entries; i++)
		used += truth->entry[i].place != 0;
	printf("events=%" PRIu64 " contradictions=%" PRIu64 " flagged=%" PRIu64 " lost=%" PRIu64,
	       found.events, found.contradictions, said(reader, "anomalies", MT_KEY_COUNTS, NULL),
	       said(reader, "closed", MT_KEY_LOSSES, NULL));
	printf(" out_of_place=%" PRIu64 " missing=%" PRIu64 " invented=%" PRIu64
	       " missing_frees=%" PRId64 " swapped_frees=%" PRIu64 " handed=%" PRIu64
	       " wrong_frees=%" PRIu64,
	       found.out_of_place, used - found.seen, found.invented,
	       (int64_t)(frees - found.frees), found.swapped_frees, found.handed,
	       truth ? truth->wrong_frees : 0);
	printf(" late=%" PRIu64 " parked=%" PRIu64 " split=%" PRIu64 " inherited=%" PRIu64 "\n",
	       said(reader, "closed", MT_KEY_ORDER_STATS, "late"),
	       said(reader, "closed", MT_KEY_ORDER_STATS, "parked"),
	       said(reader, "closed", MT_KEY_ORDER_STATS, "split_reallocs"),
	       said(reader, "closed", MT_KEY_ORDER_STATS, "inherited_ends"));
}

int main(int argc, char **argv)
{
	struct mt_artifact_reader *reader;
	struct mt_artifact_batch batch;
	struct mt_diag diag;
	int ret;

	if (argc < 2 || argc > 3)
		fail("usage: order_judge ARTIFACT [TRUTH]");
	if (argc == 3)
		open_truth(argv[2]);
	if (mt_artifact_reader_open(argv[1], &reader, &diag))
		fail("the artifact cannot be opened");
	mt_artifact_reader_use_threads(reader, MT_ARTIFACT_ALL_CORES);
	while ((ret = mt_artifact_reader_next(reader, &batch)) == 1)
		for (size_t i = 0; i < batch.n; i++)
			judge(&batch.events[i]);
	if (ret || !mt_artifact_reader_closed(reader))
		fail("the artifact is damaged or was not closed");
	print(reader);
	mt_artifact_reader_close(reader);
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct process *process, *next;

		for (process = processes[i]; process; process = next) {
			next = process->next;
			free(process->table);
			free(process);
		}
	}
	free(was_seen);
	return 0;
}
