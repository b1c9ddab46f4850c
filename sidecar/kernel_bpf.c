// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel_bpf.h"

#include "bpf/process.skel.h"
#include "common/bpf_event.h"
#include "sidecar/kernel_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*
 * libbpf's ring_buffer is not used: it stops at a record that is still being
 * written, and what stands complete behind it may be what a caller depends on.
 */
struct ring {
	int fd;
	size_t page_size;
	size_t size; /* of the data, which is mapped twice in a row */
	uint64_t *consumer;
	const uint64_t *producer;
	const char *data;
};

struct mt_kbpf {
	struct mt_kload load;
	struct ring ring;
	char *preload_name;
	uint64_t lost_told;
	uint64_t torn;
	struct mt_kqueue *queue; /* of the read that runs */
};

static int ring_open(struct ring *ring, int fd, size_t size)
{
	void *at;

	ring->fd = fd;
	ring->size = size;
	ring->page_size = (size_t)getpagesize();
	at = mmap(NULL, ring->page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	ring->consumer = at;
	at = mmap(NULL, ring->page_size + 2 * size, PROT_READ, MAP_SHARED, fd,
		  (off_t)ring->page_size);
	if (at == MAP_FAILED)
		return -errno;
	ring->producer = at;
	ring->data = (const char *)at + ring->page_size;
	return 0;
}

static void ring_close(struct ring *ring)
{
	if (ring->consumer)
		munmap(ring->consumer, ring->page_size);
	if (ring->producer)
		munmap((void *)(uintptr_t)ring->producer, ring->page_size + 2 * ring->size);
}

int mt_kbpf_open(const struct mt_kbpf_options *options, struct mt_kbpf **ret_bpf, char *why,
		 size_t why_size)
{
	const char *name = options->preload_name ? options->preload_name : "";
	struct mt_kbpf *bpf = calloc(1, sizeof(*bpf));
	struct bpf_map *map;
	int err = -ENOMEM;

	if (bpf)
		bpf->preload_name = strdup(name);
	if (!bpf || !bpf->preload_name) {
		snprintf(why, why_size, "%s", strerror(ENOMEM));
		goto out;
	}
	err = mt_kload_init(&bpf->load, options, why, why_size);
	if (err)
		goto out;
	map = bpf->load.skeleton->maps.mt_ring;
	err = ring_open(&bpf->ring, bpf_map__fd(map), bpf_map__max_entries(map));
	if (err) {
		snprintf(why, why_size, "the ring cannot be mapped: %s", strerror(-err));
		goto out;
	}
	*ret_bpf = bpf;
	bpf = NULL;
out:
	mt_kbpf_close(bpf);
	return err;
}

bool mt_kbpf_has_fentry(const struct mt_kbpf *bpf)
{
	return bpf->load.fentry;
}

void mt_kbpf_close(struct mt_kbpf *bpf)
{
	if (!bpf)
		return;
	ring_close(&bpf->ring);
	mt_kload_fini(&bpf->load);
	free(bpf->preload_name);
	free(bpf);
}

int mt_kbpf_follow(struct mt_kbpf *bpf, pid_t pid)
{
	const int32_t key = pid;
	const uint32_t one = 1;

	return bpf_map_update_elem(bpf_map__fd(bpf->load.skeleton->maps.mt_followed), &key, &one,
				   BPF_ANY);
}

int mt_kbpf_fd(const struct mt_kbpf *bpf)
{
	return bpf->ring.fd;
}

static uint32_t exec_flags(const struct mt_kbpf *bpf, uint32_t flags, const char *value, size_t len)
{
	const bool compat_sidecar = sizeof(void *) == 4;
	const size_t name_len = strlen(bpf->preload_name);
	uint32_t result = 0;
	bool named;

	if (flags & MT_BPF_AUXV) {
		result |= MT_EXEC_KNOWN;
		if (flags & MT_BPF_SECURE)
			result |= MT_EXEC_SECURE;
		if (flags & MT_BPF_NO_INTERP)
			result |= MT_EXEC_NO_INTERP;
		if (!(flags & MT_BPF_COMPAT) == compat_sidecar)
			result |= MT_EXEC_FOREIGN;
	}
	named = name_len > 0 && memmem(value, len, bpf->preload_name, name_len);
	if (!(flags & MT_BPF_ENV))
		result |= MT_EXEC_ENV_UNKNOWN;
	else if (!named && name_len > 0)
		result |= MT_EXEC_NO_PRELOAD;
	if (!(flags & MT_BPF_MAPS))
		result |= MT_EXEC_MAPS_UNKNOWN;
	return result;
}

static void exit_push(struct mt_kqueue *queue, struct mt_kev *event, uint32_t flags)
{
	event->type = MT_KEV_THREAD_EXIT;
	mt_kqueue_push(queue, MT_KREC_EVENT, event);
	if (!(flags & MT_BPF_LAST_THREAD))
		return;
	event->type = MT_KEV_EXIT;
	mt_kqueue_push(queue, MT_KREC_EVENT, event);
}

/* One record of the ring. What is not of the size that it says is passed over. */
static void ring_record(struct mt_kbpf *bpf, const char *data, size_t size)
{
	struct mt_bpf_event record;
	struct mt_kev event = { 0 };
	const char *path = data + sizeof(record);

	if (size < sizeof(record))
		return;
	memcpy(&record, data, sizeof(record));
	size -= sizeof(record);
	if (record.path_len > size || record.value_len > size - record.path_len)
		return;
	event.time_ns = record.time_ns + bpf->queue->ahead_ns;
	event.pid = record.pid;
	event.tid = record.tid;
	event.parent_pid = record.parent_pid;
	event.parent_tid = record.parent_tid;
	event.ns_pid = record.ns_pid;
	event.ns_tid = record.ns_tid;
	event.exit_status = record.exit_status;
	event.addr = record.addr;
	event.len = record.len;
	event.file_offset = record.file_offset;
	event.dev = record.dev;
	event.ino = record.ino;
	event.path = path;
	event.path_len = record.path_len;
	switch (record.type) {
	case MT_BPF_FORK:
		event.type = MT_KEV_FORK;
		event.exec_flags = record.flags & MT_BPF_SHARED_VM ? MT_EXEC_VFORK : 0;
		break;
	case MT_BPF_EXEC:
		event.type = MT_KEV_EXEC;
		event.exec_flags =
			exec_flags(bpf, record.flags, path + record.path_len, record.value_len);
		break;
	case MT_BPF_EXIT:
		exit_push(bpf->queue, &event, record.flags);
		return;
	case MT_BPF_MAPPING:
		event.type = MT_KEV_MAPPING;
		break;
	default:
		return;
	}
	mt_kqueue_push(bpf->queue, MT_KREC_EVENT, &event);
	return;
}

/* The head of a record once it is written, waiting a little while for that. */
static uint32_t ring_head_wait(const uint32_t *head)
{
	uint32_t value = __atomic_load_n(head, __ATOMIC_ACQUIRE);
	int spins;

	/* Written within a microsecond, unless its CPU is taken away from the whole machine. */
	for (spins = 0; value & BPF_RINGBUF_BUSY_BIT && spins < 2000; spins++) {
		if (spins > 1000)
			sched_yield();
		value = __atomic_load_n(head, __ATOMIC_ACQUIRE);
	}
	return value;
}

/* What was there when it began; more is left to the next time. */
static void ring_read(struct mt_kbpf *bpf)
{
	struct ring *ring = &bpf->ring;
	/* Pairs with the kernel's release of the position after it has reserved. */
	const uint64_t end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	uint64_t at = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);

	while (at < end) {
		const char *record = ring->data + (at & (ring->size - 1));
		const uint32_t head = ring_head_wait((const uint32_t *)record);
		const uint32_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		if (size > ring->size - BPF_RINGBUF_HDR_SZ) {
			/* No record: where the next one begins is not known. */
			bpf->torn++;
			at = end;
			break;
		}
		if (!(head & BPF_RINGBUF_DISCARD_BIT))
			ring_record(bpf, record + BPF_RINGBUF_HDR_SZ, size);
		at += (size + BPF_RINGBUF_HDR_SZ + 7) & ~(uint64_t)7;
	}
	/* Pairs with the kernel's load before it takes the room again. */
	__atomic_store_n(ring->consumer, at, __ATOMIC_RELEASE);
}

/*
 * A program at a function's entry can be preempted, and the kernel runs it once at a time on a CPU:
 * what another task would have told meanwhile is counted there.
 */
static uint64_t fentry_misses(const struct mt_kbpf *bpf)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(bpf->load.skeleton->progs.fentry_mmap);

	if (!bpf->load.fentry || bpf_obj_get_info_by_fd(fd, &info, &size))
		return 0;
	return info.recursion_misses;
}

void mt_kbpf_read(struct mt_kbpf *bpf, struct mt_kqueue *queue)
{
	struct mt_kev event = { .type = MT_KEV_LOST };
	struct timespec now;
	uint64_t lost;

	bpf->queue = queue;
	ring_read(bpf);
	lost = __atomic_load_n(&bpf->load.skeleton->bss->mt_lost, __ATOMIC_RELAXED) + bpf->torn +
	       fentry_misses(bpf);
	if (lost <= bpf->lost_told)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	event.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	event.lost = (uint32_t)(lost - bpf->lost_told);
	bpf->lost_told = lost;
	mt_kqueue_push(queue, MT_KREC_EVENT, &event);
}
