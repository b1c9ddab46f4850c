/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/cover.h"

#include <stddef.h>
#include <sys/mman.h>

#include "common/raw_syscall.h"
#include "preload/emit.h"
#include "preload/image.h"

static struct cover {
	long segment; /* mapped a second time, here; 0: it is not */
	/* What the interrupted write may change although it is the parent's affair. */
	uint32_t recording;
	uint32_t proc;
	uint32_t proc_generation;
} cover;

/* The segment's place in the process, and its length. */
static long place(void)
{
	return (long)mt_image.producer.header;
}

static long length(void)
{
	return (long)mt_image.segment_bytes;
}

/*
 * A record may be half written: some of its words are in the parent's memory and the others will be
 * in ours. Whether `next` has moved on from it already, nobody knows.
 */
static void copy_record(const struct mt_writer *writer)
{
	const ptrdiff_t away = (char *)cover.segment - (char *)place();
	struct mt_rec *rec;

	if (writer->chunk == NULL)
		return;
	for (rec = writer->next - 1; rec <= writer->next; rec++) {
		if (rec >= writer->chunk->records && rec < writer->end)
			*rec = *(const struct mt_rec *)((const char *)rec + away);
	}
}

void mt_cover_begin(struct mt_thread *thread)
{
	long own;

	/* A child's child, by one more handler, has inherited what its parent has. */
	if (thread->covered != 0)
		return;
	cover.recording = mt_load_relaxed(&mt_image.recording);
	cover.proc = mt_image.proc;
	cover.proc_generation = mt_image.proc_generation;
	/* An old length of 0 maps shared memory a second time. A filter might kill us for it. */
	cover.segment = mt_load_relaxed(&mt_image.producer.no_syscalls) != 0
				? 0
				: mt_syscall4(SYS_mremap, place(), 0, length(), MREMAP_MAYMOVE);
	if (mt_syscall_failed(cover.segment))
		cover.segment = 0;
	own = mt_syscall6(SYS_mmap, place(), length(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (mt_syscall_failed(own)) {
		mt_store_relaxed(&mt_image.recording, MT_RECORDING_OFF);
		return;
	}
	/* Who is in the middle of waiting for a chunk waits no more. */
	mt_store_release(&mt_image.producer.header->closed, 1);
	if (cover.segment != 0)
		copy_record(&thread->writer);
	mt_store_relaxed(&thread->covered, 1);
}

/* The record that was published since the cover was there; false: none was. */
static bool take_record(const struct mt_writer *writer, struct mt_rec *ret_rec)
{
	const struct mt_chunk *chunk = writer->chunk;

	if (chunk == NULL || chunk->used_bytes < sizeof(*chunk) + sizeof(*ret_rec) ||
	    chunk->used_bytes > mt_image.producer.chunk_bytes)
		return false;
	*ret_rec = *(const struct mt_rec *)((const char *)chunk + chunk->used_bytes -
					    sizeof(*ret_rec));
	return true;
}

/*
 * The parent writes the same. When that comes before the Fork, which nobody knows, the child has
 * not inherited a block that was freed, and its own free would be that of an unknown block. (An
 * allocation over an inherited block is no contradiction.)
 */
void mt_cover_record(struct mt_thread *thread, enum mt_rec_kind kind, uint64_t addr, uint64_t size)
{
	switch (kind) {
	case MT_REC_FREE:
	case MT_REC_REALLOC_BEGIN:
	case MT_REC_REALLOC_FAILED:
	case MT_REC_REALLOC_FREED:
		mt_emit_interrupted(thread);
		break;
	case MT_REC_FORK_DONE: /* of a sibling */
		break;
	default:
		mt_emit_slow(thread, kind, addr, size, false);
	}
}

void mt_cover_end(struct mt_thread *thread)
{
	struct mt_rec rec;
	bool written = take_record(&thread->writer, &rec);

	mt_store_relaxed(&thread->covered, 0);
	mt_store_relaxed(&thread->deferred_count, 0); /* a parent's are the parent's to record */
	thread->writer = (struct mt_writer){ 0 };
	thread->epoch = MT_EPOCH_NONE;
	mt_store_relaxed(&mt_wiped.claiming, 0);
	mt_store_relaxed(&mt_wiped.own, 0);
	mt_store_relaxed(&mt_wiped.epoch, 0);
	mt_image.proc = cover.proc;
	mt_image.proc_generation = cover.proc_generation;
	if (cover.segment == 0 ||
	    mt_syscall_failed(mt_syscall5(SYS_mremap, cover.segment, length(), length(),
					  MREMAP_MAYMOVE | MREMAP_FIXED, place()))) {
		mt_store_relaxed(&mt_image.recording, MT_RECORDING_OFF);
		return;
	}
	mt_store_relaxed(&mt_image.recording, cover.recording);
	if (!written)
		return;
	mt_cover_record(thread, (enum mt_rec_kind)(rec.size_kind & 0xff), rec.addr,
			rec.size_kind >> 8);
}
