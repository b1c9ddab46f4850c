/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The chunk consumer and the order engine against a program that owns its segment's every word: the
 * fuzzer writes into header, slots, links, chunks and records, between rounds, and makes up what
 * the kernel says of that program. Beside it an honest process records: each of its events has to
 * come out, in its order, whatever the other does.
 */
#include <sys/mman.h>

#include "common/chunk_producer.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/unit/order_support.h"

#define OPS_MAX	    512
#define SLOTS	    8 /* of each kind that the fuzzer plays with; the consumer knows more */
#define HONEST_PID  (BENCH_PID + 1)
#define HONEST_ADDR UINT64_C(0x7000000000)

struct play {
	struct bench bench;
	struct bench_image hostile, honest;
	struct mt_writer writer;
	uint64_t honest_records, at;
};

static struct mt_shm_header *header_of(const struct play *play)
{
	return play->hostile.producer.header;
}

static void *part_of(const struct play *play, unsigned part, unsigned index, size_t *ret_bytes)
{
	struct mt_shm_header *header = header_of(play);
	char *base = (char *)header;

	switch (part) {
	case 0:
		*ret_bytes = sizeof(*header);
		return header;
	case 1:
		*ret_bytes = sizeof(struct mt_proc_slot);
		return base + header->procs_offset + (index % SLOTS) * sizeof(struct mt_proc_slot);
	case 2:
		*ret_bytes = sizeof(struct mt_thread_slot);
		return base + header->threads_offset +
		       (index % SLOTS) * sizeof(struct mt_thread_slot);
	case 3:
		*ret_bytes = SLOTS * sizeof(uint32_t);
		return base + header->links_offset;
	default:
		*ret_bytes = sizeof(struct mt_chunk) + 8 * sizeof(struct mt_rec);
		return base + header->chunks_offset + (index % SLOTS) * MT_CHUNK_BYTES_MIN;
	}
}

/* A word anywhere; the constant part of the header is not read again, and is needed here. */
static void write_word(const struct play *play, struct fuzz_input *in)
{
	unsigned where = (unsigned)fuzz_take(in, 1), offset = (unsigned)fuzz_take(in, 1);
	uint64_t value = fuzz_take(in, where & 0x80 ? 8 : 1);
	size_t bytes, width = where & 0x40 ? 8 : 4;
	char *part = part_of(play, where % 5, where >> 3 & 7, &bytes);
	size_t at = offset * 4u % (bytes - width);

	if (where % 5 == 0 && at < offsetof(struct mt_shm_header, heartbeat))
		at = offsetof(struct mt_shm_header, bump);
	memcpy(part + (at & ~(width - 1)), &value, width);
}

static void write_record(struct play *play, struct fuzz_input *in)
{
	unsigned where = (unsigned)fuzz_take(in, 1), what = (unsigned)fuzz_take(in, 1);
	size_t bytes;
	struct mt_chunk *chunk = part_of(play, 4, where, &bytes);
	struct mt_rec *rec = &chunk->records[where >> 3];
	uint64_t size = fuzz_take(in, what & 0x80 ? 4 : 1);

	rec->stamp = play->bench.base + play->at + (what >> 5 & 3);
	rec->addr = (what >> 4 & 1 ? HONEST_ADDR : 0x1000) + fuzz_take(in, 1) * 8;
	rec->size_kind = size << 8 | (what & 15);
	/* Published in order, if so it is. */
	if (chunk->used_bytes == sizeof(*chunk) + (where >> 3) * sizeof(*rec))
		chunk->used_bytes += sizeof(*rec);
}

/* An ordinary claim of a slot with a chunk, so that what follows is read at all. */
static void claim(struct play *play, struct fuzz_input *in)
{
	unsigned which = (unsigned)fuzz_take(in, 1);
	size_t bytes;
	struct mt_thread_slot *thread = part_of(play, 2, which, &bytes);
	struct mt_proc_slot *proc = part_of(play, 1, which >> 3, &bytes);
	struct mt_chunk *chunk = part_of(play, 4, which, &bytes);
	struct mt_shm_header *header = header_of(play);

	if (which & 0x40) {
		proc->pid = BENCH_PID + (int32_t)fuzz_take(in, 1) % 5;
		proc->parent = 1;
		proc->fork_number = which >> 7;
		proc->state = MT_SLOT_ACTIVE;
	}
	chunk->used_bytes = sizeof(*chunk);
	chunk->next = 0;
	thread->tid = BENCH_PID + (int32_t)(which & 7);
	thread->proc = which >> 3 & 7;
	thread->first_chunk = 1 + which % SLOTS;
	thread->state = MT_SLOT_ACTIVE;
	header->proc_bump = header->thread_bump = SLOTS;
}

/* The kernel tells the truth, but for the hostile process anything can happen. */
static void kernel_says(struct play *play, struct fuzz_input *in)
{
	static const int32_t pids[4] = { BENCH_PID, BENCH_PID + 2, BENCH_PID + 3, BENCH_PID + 4 };
	unsigned what = (unsigned)fuzz_take(in, 1);
	struct mt_kev event = {
		.type = (int32_t)(what & 7) % (MT_KEV_LOST + 1),
		.pid = pids[what >> 3 & 3],
		.parent_pid = pids[what >> 5 & 3],
		.time_ns = play->bench.base + play->at,
		.exec_flags = what & 0x80 ? MT_EXEC_VFORK : 0,
		.exit_status = -1,
		.lost = 1,
		.path = "/bin/x",
		.path_len = 6,
	};

	event.tid = event.ns_pid = event.ns_tid = event.pid;
	event.parent_tid = event.parent_pid;
	if (play->bench.kernel_count < 64)
		play->bench.kernel[play->bench.kernel_count++] = event;
}

static void record_honestly(struct play *play)
{
	uint64_t addr = HONEST_ADDR + play->honest_records / 2 % 16 * 64;

	bench_put(&play->bench, &play->honest, &play->writer, play->at,
		  play->honest_records % 2 ? MT_REC_FREE : MT_REC_MALLOC, addr,
		  play->honest_records);
	play->honest_records++;
}

static void act(struct play *play, struct fuzz_input *in)
{
	unsigned op = (unsigned)fuzz_take(in, 1);

	play->at += op >> 3;
	switch (op & 7) {
	case 0:
	case 1:
		write_word(play, in);
		break;
	case 2:
	case 3:
		write_record(play, in);
		break;
	case 4:
		claim(play, in);
		break;
	case 5:
		kernel_says(play, in);
		break;
	case 6:
		record_honestly(play);
		break;
	case 7:
		mt_order_round(play->bench.order);
		break;
	}
}

static void check_honest(const struct play *play)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < play->bench.count; i++) {
		const struct mt_event *event = &play->bench.events[i];

		fuzz_must(i == 0 || event->timestamp_ns >= event[-1].timestamp_ns,
			  "time never falls");
		if (event->pid != HONEST_PID || event->tid != HONEST_PID)
			continue;
		if (event->type == MT_EVENT_FORK || event->type == MT_EVENT_EXIT)
			fuzz_must(0, "nobody else tells of the honest process");
		if (event->type == MT_EVENT_EXEC)
			continue;
		fuzz_must(event->type == (seen % 2 ? MT_EVENT_FREE : MT_EVENT_MALLOC) &&
				  event->addr == HONEST_ADDR + seen / 2 % 16 * 64 &&
				  (seen % 2 || event->size == seen),
			  "the honest process's events are as they were");
		seen++;
	}
	fuzz_must(seen == play->honest_records, "the honest process lost nothing");
}

static void unmap(struct bench_image *image)
{
	munmap(image->producer.header, image->producer.header->total_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct play play;
	struct fuzz_input in = { data, size };
	unsigned how = (unsigned)fuzz_take(&in, 1);
	struct bench_options options = { .kernel_events = how & 1,
					 .max_liveness_bytes = how & 2 ? 256 << 10 : 0 };

	memset(&play, 0, sizeof(play));
	bench_open(&play.bench, &options);
	bench_image(&play.bench, &play.honest, HONEST_PID, MT_HELLO_ROOT);
	play.writer = bench_thread(&play.honest, play.honest.proc, HONEST_PID);
	record_honestly(&play);
	bench_run(&play.bench); /* it is known before the other one starts */
	bench_image(&play.bench, &play.hostile, BENCH_PID, how & 4 ? MT_HELLO_ROOT : 0);
	for (int i = 0; i < OPS_MAX && in.left; i++)
		act(&play, &in);
	(void)bench_finish(&play.bench);
	check_honest(&play);
	unmap(&play.hostile);
	unmap(&play.honest);
	bench_close(&play.bench);
	return 0;
}
