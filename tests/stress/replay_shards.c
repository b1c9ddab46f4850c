/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A replay gives the same totals, processes, images and findings, in the same order, for any number
 * of threads: random events of a tree of processes that forks, execs, exits and contradicts itself,
 * given in calls small and large. Plain main(), for the thread sanitizer.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay.h"

#define EVENTS	  120000u
#define PIDS	  12u
#define ADDRESSES 3000u
/* Of the findings so many are compared one by one; all are hashed. */
#define KEPT 64u

struct outcome {
	struct mt_replay_totals totals;
	uint64_t processes_hash;
	uint64_t findings_hash;
	uint64_t findings;
	struct mt_finding kept[KEPT];
};

static uint64_t state = 88172645463325252ull;

static uint64_t random_next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	while (len--)
		hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
	return hash;
}

#define HASH(hash, value) ((hash) = hash_bytes((hash), &(value), sizeof(value)))

static void on_finding(void *context, const struct mt_finding *finding)
{
	struct outcome *outcome = context;
	struct mt_finding plain;

	/* All bytes, the padding too. */
	memset(&plain, 0, sizeof(plain));
	plain.kind = finding->kind;
	plain.frame = finding->frame;
	plain.index = finding->index;
	plain.addr = finding->addr;
	plain.has_before = finding->has_before;
	plain.before_frame = finding->before_frame;
	plain.before_index = finding->before_index;
	plain.before_size = finding->before_size;
	plain.before_ns = finding->before_ns;
	HASH(outcome->findings_hash, plain);
	HASH(outcome->findings_hash, finding->event->timestamp_ns);
	if (outcome->findings < KEPT)
		outcome->kept[outcome->findings] = plain;
	outcome->findings++;
}

static uint8_t heap_type(uint64_t r)
{
	static const uint8_t types[] = { MT_EVENT_MALLOC,	 MT_EVENT_MALLOC,  MT_EVENT_CALLOC,
					 MT_EVENT_ALIGNED_ALLOC, MT_EVENT_REALLOC, MT_EVENT_REALLOC,
					 MT_EVENT_FREE,		 MT_EVENT_FREE };

	return types[r % sizeof(types)];
}

/* How a scene differs from the others: how rare forks and contradictions are in it. */
struct scene {
	const char *name;
	unsigned turns;	 /* one event of so many is a Fork, Exec, Exit, Mapping or Stack */
	unsigned errors; /* one heap event of so many is at any address, not at one that fits */
	uint64_t max_size;
};

/* What is live in each pid, as the events are made, so that most of them are in order. */
static bool live[PIDS][ADDRESSES];

static void make_turn(struct mt_event *event, unsigned pid, uint64_t r,
		      const struct mt_mapping *map, const struct mt_stack *stack)
{
	static const uint8_t types[] = { MT_EVENT_FORK, MT_EVENT_FORK,	  MT_EVENT_FORK,
					 MT_EVENT_EXEC, MT_EVENT_EXIT,	  MT_EVENT_EXIT,
					 MT_EVENT_RSS,	MT_EVENT_MAPPING, MT_EVENT_STACK };
	unsigned parent = (unsigned)(r >> 20) % PIDS;

	event->type = types[(r >> 8) % sizeof(types)];
	if (event->type == MT_EVENT_FORK) {
		event->aux = parent + 100;
		if (parent != pid)
			memcpy(live[pid], live[parent], sizeof(live[pid]));
	} else if (event->type == MT_EVENT_EXEC || event->type == MT_EVENT_EXIT) {
		memset(live[pid], 0, sizeof(live[pid]));
	} else if (event->type == MT_EVENT_MAPPING) {
		event->mapping = map;
	} else if (event->type == MT_EVENT_STACK) {
		event->stack = stack;
	}
}

static unsigned find_address(unsigned pid, uint64_t r, bool wanted)
{
	unsigned at = (unsigned)(r % ADDRESSES);

	for (unsigned i = 0; i < 64 && live[pid][at] != wanted; i++)
		at = (at + 1) % ADDRESSES;
	return at;
}

static void make_heap(struct mt_event *event, unsigned pid, uint64_t r, const struct scene *scene)
{
	bool error = scene->errors && (r >> 40) % scene->errors == 0;
	unsigned at;

	event->type = heap_type(r >> 8);
	if (event->type == MT_EVENT_FREE || event->type == MT_EVENT_REALLOC) {
		at = error ? (unsigned)((r >> 16) % ADDRESSES) : find_address(pid, r >> 16, true);
		live[pid][at] = false;
		event->addr = event->aux = at * 16ull;
		if (event->type == MT_EVENT_FREE) {
			event->aux = 0;
			return;
		}
		event->flags = (r >> 44) % 4 ? MT_EVENT_HAS_OLD : 0;
		event->aux = event->flags ? event->aux : 0;
	}
	at = error ? (unsigned)((r >> 28) % ADDRESSES) : find_address(pid, r >> 28, false);
	live[pid][at] = true;
	event->addr = at * 16ull;
	event->size = random_next() % scene->max_size;
	if ((r >> 48) % 16 == 0)
		event->stack_hash = 1 + (r >> 52) % 8;
}

static void make_events(struct mt_event *events, const struct scene *scene)
{
	static const struct mt_mapping map = { .path = "/bin/true", .path_len = 9 };
	static const struct mt_stack stack = { .hash = 3 };
	unsigned pid = 0;

	memset(live, 0, sizeof(live));
	for (size_t i = 0; i < EVENTS; i++) {
		struct mt_event *event = &events[i];
		uint64_t r = random_next();

		/* Runs of events of one process, as they are recorded. */
		if (r % 16 == 0)
			pid = (unsigned)(r >> 4) % PIDS;
		r = random_next();
		*event = (struct mt_event){ .timestamp_ns = 1000 + i * 10 };
		event->pid = (int32_t)pid + 100;
		event->tid = event->pid + (int32_t)((r >> 56) % 3);
		if (scene->errors && (r >> 50) % 5000 == 0)
			event->timestamp_ns -= 500;
		if (scene->turns && random_next() % scene->turns == 0)
			make_turn(event, pid, r, &map, &stack);
		else
			make_heap(event, pid, r, scene);
	}
}

static void hash_process(struct outcome *outcome, const struct mt_replay_process *process)
{
	uint64_t *hash = &outcome->processes_hash;

	HASH(*hash, process->pid);
	HASH(*hash, process->parent_pid);
	HASH(*hash, process->forked);
	HASH(*hash, process->exited);
	HASH(*hash, process->threads);
	for (uint32_t i = 0; i < process->images_count; i++) {
		const struct mt_replay_image *image = &process->images[i];

		HASH(*hash, image->start);
		HASH(*hash, image->first_ns);
		HASH(*hash, image->last_ns);
		HASH(*hash, image->counts.kinds);
		HASH(*hash, image->counts.reallocs_of_block);
		HASH(*hash, image->counts.allocated_bytes);
		HASH(*hash, image->inherited);
		HASH(*hash, image->left);
		HASH(*hash, image->peak.bytes);
		HASH(*hash, image->peak.inherited_bytes);
		HASH(*hash, image->peak.blocks);
		HASH(*hash, image->peak.time_ns);
		HASH(*hash, image->inherited_ended);
		*hash = hash_bytes(*hash, image->path, image->path_len);
	}
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	printf("Bail out! %s\n", what);
	exit(1);
}

/* Replays in calls of up to `call` events, each one data frame. */
static void replay(const struct mt_event *events, unsigned threads, size_t call,
		   struct outcome *outcome)
{
	const struct mt_replay_options options = { on_finding, outcome, threads };
	const struct mt_replay_process *const *list;
	struct mt_replay *replay;
	size_t count;

	memset(outcome, 0, sizeof(*outcome));
	must(!mt_replay_new(&options, &replay), "mt_replay_new");
	for (size_t i = 0; i < EVENTS; i += call) {
		must(!mt_replay_events(replay, events + i, EVENTS - i < call ? EVENTS - i : call,
				       i / call, 0),
		     "mt_replay_events");
		mt_replay_frame_end(replay);
	}
	outcome->totals = *mt_replay_totals(replay);
	count = mt_replay_processes(replay, &list);
	for (size_t i = 0; i < count; i++)
		hash_process(outcome, list[i]);
	mt_replay_free(replay);
}

static bool same(const struct outcome *one, const struct outcome *other)
{
	return !memcmp(&one->totals, &other->totals, sizeof(one->totals)) &&
	       one->processes_hash == other->processes_hash && one->findings == other->findings &&
	       one->findings_hash == other->findings_hash &&
	       !memcmp(one->kept, other->kept, sizeof(one->kept));
}

int main(void)
{
	static const struct scene scenes[] = {
		{ "one process tree in order", 2000, 0, 4096 },
		{ "forks and contradictions", 100, 20, 100000 },
		{ "turns at every other event", 2, 3, UINT64_MAX },
		{ "contradictions of huge blocks", 0, 2, UINT64_MAX },
	};
	static const unsigned threads[] = { 2, 3, 8, 100 };
	static const size_t calls[] = { 65536, 5000 };
	static struct outcome want, got;
	struct mt_event *events = calloc(EVENTS, sizeof(*events));
	unsigned cases = 0;
	bool failed = false;

	must(events, "out of memory");
	for (size_t s = 0; s < sizeof(scenes) / sizeof(scenes[0]); s++) {
		make_events(events, &scenes[s]);
		for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
			bool ok = true;

			replay(events, 1, calls[c], &want);
			for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); t++) {
				replay(events, threads[t], calls[c], &got);
				ok = ok && same(&want, &got);
			}
			printf("%sok %u - %s, calls of %zu: 1, 2, 3, 8 and 100 threads find the "
			       "same %llu places\n",
			       ok ? "" : "not ", ++cases, scenes[s].name, calls[c],
			       (unsigned long long)want.findings);
			failed |= !ok;
		}
	}
	printf("1..%u\n", cases);
	free(events);
	return failed;
}
