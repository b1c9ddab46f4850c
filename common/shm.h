/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes, seals and maps the shared memory of one image (layout in chunk.h): the sidecar's side.
 *
 * The memfd is sparse: untouched pages cost nothing. It is sealed with F_SEAL_SHRINK, F_SEAL_GROW
 * and F_SEAL_SEAL before it is handed out, so that nobody can take a page away under a reader.
 *
 * Owner: who called mt_shm_create. Threads: one at a time, but for the words that chunk.h shares.
 */
#ifndef MT_COMMON_SHM_H
#define MT_COMMON_SHM_H

#include <stddef.h>
#include <stdint.h>

#include "common/chunk.h"

struct mt_shm {
	struct mt_shm_header *header; /* the mapping; untrusted but for what the copy below holds */
	struct mt_shm_header layout;  /* our own copy of the constant part */
	int fd;			      /* memfd, close-on-exec; -1 when it was closed */
	void *guard;		      /* private page before the mapping: the robust list's node */
};

struct mt_shm_options {
	uint64_t pool_bytes;	/* --buffer-size: chunks that may be used at first */
	uint64_t max_bytes;	/* the largest this image may grow to */
	uint64_t max_map_bytes; /* address space allowed, UINT64_MAX: any */
	uint32_t policy;	/* enum mt_policy */
	uint32_t flags;		/* MT_SHM_* */
	uint32_t counter;	/* enum mt_counter */
	uint32_t max_wait_ms;
};

/* Returns 0 or a negative errno (-ENOMEM, -EMFILE, -EINVAL: no room for the smallest layout). */
int mt_shm_create(const struct mt_shm_options *options, struct mt_shm *ret_shm);

/*
 * Makes the calling thread the holder of `alive`: when it dies, the kernel marks the word. The
 * thread must live until mt_shm_destroy, which it must call itself too. Returns 0 or a negative
 * errno.
 */
int mt_shm_hold_alive(struct mt_shm *shm);

/* Unmaps and closes. */
void mt_shm_destroy(struct mt_shm *shm);

static inline struct mt_thread_slot *mt_shm_thread(const struct mt_shm *shm, uint32_t index)
{
	return (struct mt_thread_slot *)((char *)shm->header + shm->layout.threads_offset) + index;
}

static inline struct mt_proc_slot *mt_shm_proc(const struct mt_shm *shm, uint32_t index)
{
	return (struct mt_proc_slot *)((char *)shm->header + shm->layout.procs_offset) + index;
}

static inline uint32_t *mt_shm_links(const struct mt_shm *shm)
{
	return (uint32_t *)((char *)shm->header + shm->layout.links_offset);
}

static inline struct mt_chunk *mt_shm_chunk(const struct mt_shm *shm, uint32_t index)
{
	return (struct mt_chunk *)((char *)shm->header + shm->layout.chunks_offset +
				   (uint64_t)index * shm->layout.chunk_bytes);
}

#endif
