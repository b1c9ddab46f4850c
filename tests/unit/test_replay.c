/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay.h"

/* A replay with one event after the other at 10 ns, and what it found. */
struct run {
	struct mt_replay *replay;
	uint64_t time_ns;
	uint64_t index;
	struct mt_finding last;
	unsigned found;
};

static void on_finding(void *context, const struct mt_finding *finding)
{
	struct run *run = context;

	run->last = *finding;
	run->last.event = NULL;
	run->found++;
}

static struct run run_new(void)
{
	return (struct run){ 0 };
}

static void play(struct run *run, struct mt_event event)
{
	struct mt_replay_options options = { .on_finding = on_finding, .context = run };

	if (!run->replay)
		cr_assert_eq(mt_replay_new(&options, &run->replay), 0);
	run->time_ns += 10;
	if (!event.timestamp_ns)
		event.timestamp_ns = run->time_ns;
	if (!event.tid)
		event.tid = event.pid;
	cr_assert_eq(mt_replay_events(run->replay, &event, 1, 0, run->index++), 0);
}

static struct mt_event heap(uint8_t type, int pid, uint64_t addr, uint64_t size)
{
	return (struct mt_event){ .type = type, .pid = pid, .addr = addr, .size = size };
}

static struct mt_event alloc(int pid, uint64_t addr, uint64_t size)
{
	return heap(MT_EVENT_MALLOC, pid, addr, size);
}

static struct mt_event release(int pid, uint64_t addr)
{
	return heap(MT_EVENT_FREE, pid, addr, 0);
}

static struct mt_event resize(int pid, uint64_t old, uint64_t addr, uint64_t size)
{
	struct mt_event event = heap(MT_EVENT_REALLOC, pid, addr, size);

	event.flags = MT_EVENT_HAS_OLD;
	event.aux = old;
	return event;
}

static struct mt_event process(uint8_t type, int pid, int parent)
{
	struct mt_event event = { .type = type, .pid = pid };

	event.aux = (uint64_t)(int64_t)parent;
	return event;
}

static const struct mt_replay_process *life(struct run *run, size_t index)
{
	const struct mt_replay_process *const *list;

	cr_assert_lt(index, mt_replay_processes(run->replay, &list));
	return list[index];
}

static uint64_t findings(struct run *run, enum mt_finding_kind kind)
{
	return mt_replay_totals(run->replay)->findings[kind];
}

Test(replay, counts_live_and_peak)
{
	struct run run = run_new();
	const struct mt_replay_totals *totals;

	play(&run, alloc(1, 0x10, 100));
	play(&run, heap(MT_EVENT_CALLOC, 1, 0x20, 50));
	play(&run, release(1, 0x10));
	play(&run, heap(MT_EVENT_ALIGNED_ALLOC, 1, 0x30, 30));
	totals = mt_replay_totals(run.replay);
	cr_assert_eq(totals->live_bytes, 80);
	cr_assert_eq(totals->live_blocks, 2);
	cr_assert_eq(totals->peak.bytes, 150);
	cr_assert_eq(totals->peak.time_ns, 20);
	cr_assert_eq(totals->counts.allocated_bytes, 180);
	cr_assert_eq(run.found, 0);
	mt_replay_free(run.replay);
}

Test(replay, realloc_moves_grows_and_allocates)
{
	struct run run = run_new();
	struct mt_event split = heap(MT_EVENT_REALLOC, 1, 0x40, 4);

	play(&run, resize(1, 0, 0x10, 100));
	play(&run, resize(1, 0x10, 0x20, 200));
	play(&run, resize(1, 0x20, 0x20, 50));
	play(&run, split);
	cr_assert_eq(mt_replay_totals(run.replay)->live_bytes, 54);
	cr_assert_eq(mt_replay_totals(run.replay)->live_blocks, 2);
	cr_assert_eq(mt_replay_totals(run.replay)->peak.bytes, 200, "never both at once");
	cr_assert_eq(mt_replay_totals(run.replay)->counts.reallocs_of_block, 2);
	cr_assert_eq(run.found, 0);
	mt_replay_free(run.replay);
}

Test(replay, contradictions_are_told_apart)
{
	struct run run = run_new();

	play(&run, alloc(1, 0x10, 1));
	play(&run, alloc(1, 0x10, 2));
	cr_assert_eq(run.last.kind, MT_FIND_ALLOC_OVER_LIVE);
	cr_assert_eq(run.last.index, 1);
	cr_assert_eq(run.last.before_size, 1);
	cr_assert_eq(mt_replay_totals(run.replay)->live_bytes, 2, "the newer block counts");
	play(&run, release(1, 0x10));
	play(&run, release(1, 0x10));
	cr_assert_eq(run.last.kind, MT_FIND_DOUBLE_FREE);
	cr_assert_eq(run.last.before_index, 2);
	play(&run, release(1, 0x999));
	cr_assert_eq(run.last.kind, MT_FIND_UNKNOWN_FREE);
	play(&run, resize(1, 0x888, 0x20, 5));
	cr_assert_eq(run.last.kind, MT_FIND_UNKNOWN_FREE);
	cr_assert_eq(run.last.addr, 0x888);
	cr_assert_eq(run.found, 4);
	mt_replay_free(run.replay);
}

Test(replay, fork_inherits_and_stays_apart)
{
	struct run run = run_new();
	const struct mt_replay_process *child;

	play(&run, alloc(1, 0x10, 100));
	play(&run, alloc(1, 0x20, 10));
	play(&run, process(MT_EVENT_FORK, 2, 1));
	play(&run, alloc(2, 0x30, 7));
	play(&run, release(2, 0x10));
	play(&run, release(1, 0x20));
	cr_assert_eq(run.found, 0, "frees of inherited blocks are known");
	child = life(&run, 1);
	cr_assert(child->forked);
	cr_assert_eq(child->parent_pid, 1);
	cr_assert_eq(child->images[0].inherited.bytes, 110);
	cr_assert_eq(child->images[0].left.bytes, 17);
	cr_assert_eq(child->images[0].left.inherited_bytes, 10);
	cr_assert_eq(child->images[0].peak.bytes, 117);
	cr_assert_eq(child->images[0].peak.inherited_bytes, 110);
	cr_assert_eq(mt_replay_totals(run.replay)->live_bytes, 107, "own blocks only");
	cr_assert_eq(mt_replay_totals(run.replay)->peak.bytes, 117);
	mt_replay_free(run.replay);
}

Test(replay, allocation_over_inherited_is_counted_only)
{
	struct run run = run_new();

	play(&run, alloc(1, 0x10, 100));
	play(&run, process(MT_EVENT_FORK, 2, 1));
	play(&run, alloc(2, 0x10, 8));
	cr_assert_eq(run.found, 0);
	cr_assert_eq(mt_replay_totals(run.replay)->inherited_ended, 1);
	cr_assert_eq(life(&run, 1)->images[0].left.bytes, 8);
	cr_assert_eq(life(&run, 1)->images[0].left.inherited_blocks, 0);
	play(&run, alloc(2, 0x10, 9));
	cr_assert_eq(run.last.kind, MT_FIND_ALLOC_OVER_LIVE, "now it is the child's own");
	mt_replay_free(run.replay);
}

Test(replay, exec_and_exit_drop_the_address_space)
{
	struct run run = run_new();
	const struct mt_replay_process *first;

	play(&run, alloc(1, 0x10, 100));
	play(&run, process(MT_EVENT_EXEC, 1, 0));
	play(&run, alloc(1, 0x10, 3));
	play(&run, release(1, 0x10));
	play(&run, alloc(1, 0x20, 4));
	play(&run, process(MT_EVENT_EXIT, 1, 0));
	cr_assert_eq(run.found, 0);
	first = life(&run, 0);
	cr_assert_eq(first->images_count, 2);
	cr_assert_eq(first->images[0].left.bytes, 100);
	cr_assert_eq(first->images[1].start, MT_IMAGE_EXEC);
	cr_assert_eq(first->images[1].left.bytes, 4);
	cr_assert(first->exited);
	cr_assert_eq(mt_replay_totals(run.replay)->live_bytes, 0);
	mt_replay_free(run.replay);
}

Test(replay, pid_used_again_is_another_life)
{
	struct run run = run_new();

	play(&run, alloc(1, 0x10, 1));
	play(&run, process(MT_EVENT_FORK, 2, 1));
	play(&run, process(MT_EVENT_EXIT, 2, 0));
	play(&run, process(MT_EVENT_FORK, 2, 1));
	play(&run, alloc(2, 0x20, 1));
	cr_assert_eq(run.found, 0);
	cr_assert_eq(life(&run, 2)->pid, 2);
	mt_replay_free(run.replay);
}

Test(replay, causality_of_processes)
{
	struct run run = run_new();

	play(&run, alloc(1, 0x10, 1));
	play(&run, alloc(2, 0x10, 1));
	play(&run, process(MT_EVENT_FORK, 2, 1));
	play(&run, process(MT_EVENT_EXIT, 2, 0));
	play(&run, process(MT_EVENT_EXIT, 2, 0));
	play(&run, heap(MT_EVENT_RSS, 2, 0, 0));
	play(&run, process(MT_EVENT_FORK, 3, 2));
	play(&run, process(MT_EVENT_FORK, 4, 4));
	play(&run, alloc(2, 0x10, 1));
	cr_assert_eq(findings(&run, MT_FIND_FORK_AFTER_EVENT), 1);
	cr_assert_eq(findings(&run, MT_FIND_EXIT_TWICE), 1);
	cr_assert_eq(findings(&run, MT_FIND_FORK_BY_DEAD), 1);
	cr_assert_eq(findings(&run, MT_FIND_FORK_OF_SELF), 1);
	cr_assert_eq(findings(&run, MT_FIND_AFTER_EXIT), 1, "but not for Rss");
	cr_assert_eq(run.found, 5);
	mt_replay_free(run.replay);
}

Test(replay, time_going_back_is_found)
{
	struct run run = run_new();
	struct mt_event early = alloc(1, 0x20, 1);

	play(&run, alloc(1, 0x10, 1));
	play(&run, release(1, 0x10));
	early.timestamp_ns = 15;
	play(&run, early);
	cr_assert_eq(run.last.kind, MT_FIND_TIME_BACK);
	cr_assert_eq(run.last.before_ns, 20);
	cr_assert_eq(mt_replay_totals(run.replay)->last_ns, 20);
	mt_replay_free(run.replay);
}

Test(replay, stacks_are_defined_up_to_the_end_of_the_frame)
{
	struct run run = run_new();
	struct mt_stack stack = { .hash = 5 };
	struct mt_event use = alloc(1, 0x10, 1);
	struct mt_event define = { .type = MT_EVENT_STACK, .pid = 1 };

	use.stack_hash = 5;
	play(&run, use);
	define.stack = &stack;
	play(&run, define);
	mt_replay_frame_end(run.replay);
	cr_assert_eq(run.found, 0);
	use.addr = 0x20;
	use.stack_hash = 6;
	play(&run, use);
	use.addr = 0x30;
	play(&run, use);
	cr_assert_eq(run.found, 0);
	mt_replay_frame_end(run.replay);
	cr_assert_eq(run.found, 1, "once a hash");
	cr_assert_eq(run.last.kind, MT_FIND_STACK_UNDEFINED);
	cr_assert_eq(run.last.index, 2);
	mt_replay_free(run.replay);
}

Test(replay, threads_are_counted_once_a_process)
{
	struct run run = run_new();

	for (int i = 0; i < 100; i++) {
		struct mt_event event = alloc(1 + i % 2, 0x1000u + 16u * (unsigned)i, 1);

		event.tid = 10 + i % 4;
		play(&run, event);
	}
	cr_assert_eq(mt_replay_totals(run.replay)->threads, 4);
	cr_assert_eq(life(&run, 0)->threads, 2);
	mt_replay_free(run.replay);
}

Test(replay, huge_sizes_do_not_wrap)
{
	struct run run = run_new();
	const struct mt_replay_totals *totals;

	for (uint64_t i = 1; i <= 4; i++)
		play(&run, alloc(1, i * 16, UINT64_MAX));
	totals = mt_replay_totals(run.replay);
	cr_assert(totals->live_bytes == (mt_sum)UINT64_MAX * 4);
	cr_assert(totals->peak.bytes == totals->live_bytes);
	mt_replay_free(run.replay);
}

Test(replay, fork_of_a_large_heap_copies_nothing)
{
	struct run run = run_new();
	const uint64_t blocks = 200000;
	const int forks = 2000;

	for (uint64_t i = 0; i < blocks; i++)
		play(&run, alloc(1, i * 32, 16));
	/* Copied eagerly these would be 400 million blocks: 10 GB and half a minute. */
	for (int i = 0; i < forks; i++) {
		play(&run, process(MT_EVENT_FORK, 10 + i, 1));
		if (i % 100 == 0)
			play(&run, release(10 + i, 32));
	}
	cr_assert_eq(life(&run, (size_t)forks)->images[0].inherited.blocks, blocks);
	cr_assert_eq(run.found, 0);
	mt_replay_free(run.replay);
}
