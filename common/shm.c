/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/atomic.h"

#define CHUNKS_PER_POOL 512u
#define CHUNKS_MIN	4u
#define PROCS_MIN	16u
#define THREADS_MIN	64u

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

/* Of this kernel: aarch64 has kernels with pages of 4, 16 and 64 KiB. */
static uint64_t page_bytes(void)
{
	return (uint64_t)getpagesize();
}

static uint64_t align_up(uint64_t value)
{
	return (value + MT_SHM_ALIGN - 1) & ~(uint64_t)(MT_SHM_ALIGN - 1);
}

static uint32_t chunk_bytes_for(uint64_t pool_bytes)
{
	uint32_t bytes = MT_CHUNK_BYTES_MIN;

	while (bytes < MT_CHUNK_BYTES_MAX && (uint64_t)bytes * CHUNKS_PER_POOL < pool_bytes)
		bytes *= 2;
	return bytes;
}

static uint64_t slots_bytes(const struct mt_shm_header *layout)
{
	return MT_SHM_ALIGN + align_up((uint64_t)layout->proc_count * sizeof(struct mt_proc_slot)) +
	       align_up((uint64_t)layout->thread_count * sizeof(struct mt_thread_slot));
}

/* Fills in counts and offsets; the slots take at most a quarter of a small address space. */
static int lay_out(const struct mt_shm_options *options, struct mt_shm_header *layout)
{
	uint64_t page = page_bytes(), room = options->max_map_bytes / page * page, chunks;

	layout->chunk_bytes = chunk_bytes_for(options->pool_bytes);
	layout->proc_count = MT_SHM_PROCS_MAX;
	layout->thread_count = MT_SHM_THREADS_MAX;
	while (slots_bytes(layout) > room / 4 && layout->thread_count > THREADS_MIN) {
		layout->thread_count /= 2;
		if (layout->proc_count > PROCS_MIN)
			layout->proc_count /= 2;
	}
	/* One page for the rounding of the links. */
	if (slots_bytes(layout) + MT_SHM_ALIGN >= room)
		return -EINVAL;
	room -= slots_bytes(layout) + MT_SHM_ALIGN;
	while (layout->chunk_bytes > MT_CHUNK_BYTES_MIN &&
	       room / layout->chunk_bytes < CHUNKS_PER_POOL)
		layout->chunk_bytes /= 2;
	chunks =
		options->max_bytes > options->pool_bytes ? options->max_bytes : options->pool_bytes;
	chunks /= layout->chunk_bytes;
	if (chunks > room / (layout->chunk_bytes + sizeof(uint32_t)))
		chunks = room / (layout->chunk_bytes + sizeof(uint32_t));
	if (chunks > MT_SHM_CHUNKS_MAX)
		chunks = MT_SHM_CHUNKS_MAX;
	if (chunks < CHUNKS_MIN)
		return -EINVAL;
	layout->chunk_count = (uint32_t)chunks;
	layout->procs_offset = MT_SHM_ALIGN;
	layout->threads_offset = layout->procs_offset + align_up((uint64_t)layout->proc_count *
								 sizeof(struct mt_proc_slot));
	layout->links_offset = layout->threads_offset + align_up((uint64_t)layout->thread_count *
								 sizeof(struct mt_thread_slot));
	layout->chunks_offset =
		layout->links_offset + align_up((uint64_t)layout->chunk_count * sizeof(uint32_t));
	/* Whole pages, which is what a mapping takes. */
	layout->total_bytes =
		layout->chunks_offset + (uint64_t)layout->chunk_count * layout->chunk_bytes;
	layout->total_bytes = (layout->total_bytes + page - 1) / page * page;
	return 0;
}

static int make_memfd(uint64_t bytes)
{
	int saved, fd = (int)syscall(SYS_memfd_create, "memtrack",
				     MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* Linux before 6.3 */
		fd = (int)syscall(SYS_memfd_create, "memtrack", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	saved = errno;
	close(fd);
	return -saved;
}

/*
 * One reservation: a private page, then the segment. The kernel finds the futex word at a constant
 * distance from the list's node, and nobody but us can write the node.
 */
static int map_segment(struct mt_shm *shm)
{
	uint64_t bytes = shm->layout.total_bytes, guard = page_bytes();
	char *base = mmap(NULL, bytes + guard, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int saved;

	if (base == MAP_FAILED)
		return -errno;
	if (mprotect(base, guard, PROT_READ | PROT_WRITE) == 0 &&
	    mmap(base + guard, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shm->fd, 0) !=
		    MAP_FAILED) {
		shm->guard = base;
		shm->header = (struct mt_shm_header *)(base + guard);
		/* A core dump of the sidecar has no use for it: failing changes nothing else. */
		(void)madvise(base + guard, bytes, MADV_DONTDUMP);
		return 0;
	}
	saved = errno;
	munmap(base, bytes + guard);
	return -saved;
}

int mt_shm_create(const struct mt_shm_options *options, struct mt_shm *ret_shm)
{
	struct mt_shm shm = { .fd = -1 };
	uint64_t limit;
	int ret;

	shm.layout.magic = MT_SHM_MAGIC;
	shm.layout.version = MT_SHM_VERSION;
	shm.layout.flags = options->flags;
	shm.layout.policy = options->policy;
	shm.layout.counter = options->counter;
	shm.layout.max_wait_ms = options->max_wait_ms;
	ret = lay_out(options, &shm.layout);
	if (ret < 0)
		return ret;
	shm.fd = make_memfd(shm.layout.total_bytes);
	if (shm.fd < 0)
		return shm.fd;
	ret = map_segment(&shm);
	if (ret < 0) {
		close(shm.fd);
		return ret;
	}
	limit = options->pool_bytes / shm.layout.chunk_bytes;
	if (limit < CHUNKS_MIN)
		limit = CHUNKS_MIN;
	if (limit > shm.layout.chunk_count)
		limit = shm.layout.chunk_count;
	shm.layout.limit = (uint32_t)limit;
	*shm.header = shm.layout;
	*ret_shm = shm;
	return 0;
}

/*
 * The robust list of the calling thread. It replaces the C library's: a thread that holds segments
 * must not use robust mutexes.
 */
struct robust_node {
	struct robust_list link;
	struct robust_node *previous; /* NULL: the head is */
};

static __thread struct robust_list_head robust_head;
static __thread bool robust_registered;

static int register_robust_list(long futex_offset)
{
	if (robust_registered)
		return 0;
	robust_head.list.next = &robust_head.list;
	robust_head.futex_offset = futex_offset;
	robust_head.list_op_pending = NULL;
	if (syscall(SYS_set_robust_list, &robust_head, sizeof(robust_head)) != 0)
		return -errno;
	robust_registered = true;
	return 0;
}

int mt_shm_hold_alive(struct mt_shm *shm)
{
	struct robust_node *node = shm->guard;
	char *word = (char *)&shm->header->alive;
	int ret = register_robust_list(word - (char *)node);

	if (ret < 0)
		return ret;
	mt_store_release(&shm->header->alive, (uint32_t)syscall(SYS_gettid));
	node->previous = NULL;
	node->link.next = robust_head.list.next;
	if (node->link.next != &robust_head.list)
		((struct robust_node *)node->link.next)->previous = node;
	/* The kernel may walk the list at any moment: the node is whole before it is in. */
	mt_store_release(&robust_head.list.next, &node->link);
	return 0;
}

static void leave_robust_list(struct robust_node *node)
{
	if (!robust_registered || !node->link.next)
		return;
	if (node->previous)
		mt_store_release(&node->previous->link.next, node->link.next);
	else
		mt_store_release(&robust_head.list.next, node->link.next);
	if (node->link.next != &robust_head.list)
		((struct robust_node *)node->link.next)->previous = node->previous;
}

void mt_shm_destroy(struct mt_shm *shm)
{
	if (shm->guard) {
		leave_robust_list(shm->guard);
		munmap(shm->guard, shm->layout.total_bytes + page_bytes());
	}
	if (shm->fd >= 0)
		close(shm->fd);
	*shm = (struct mt_shm){ .fd = -1 };
}
