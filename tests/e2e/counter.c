/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts what a library that stands behind memtrack's in LD_PRELOAD sees: successful calls and
 * bytes by kind, in a slot for each process image (counter.h). One event a block: calls that an
 * allocator makes into itself are not counted, and an operator new counts only when the block did
 * not come through our own malloc.
 *
 * Allocations are counted after the real call and frees before it, so a thread that is killed in
 * between leaves memtrack at most one allocation behind, or one free ahead.
 */
#include "tests/e2e/counter.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define TLS    static __thread __attribute__((tls_model("initial-exec")))

/* Inside a C entry point of the allocator. Volatile, since dlsym is declared as calling nobody. */
TLS volatile int depth;
TLS volatile bool looking; /* for the next function of a name; as above */
TLS uint64_t counted;	   /* events of this thread */
TLS void *last_block;	   /* of the last event */
TLS uint32_t thread_slot;  /* slot + 1 in which this thread is counted as started */
TLS bool thread_ended;	   /* its destructors ran */

static struct counter_slot *slots;
static uint32_t *next_slot;
static uint32_t *own_slot; /* on a page that the kernel wipes in a forked child; slot + 1 */
static bool passive;	   /* no file was named: count nothing */
static bool claimed_once;
static struct counter_slot early; /* what came before libc knew the environment */
static pthread_key_t end_key;

static void on_thread_end(void *unused)
{
	(void)unused;
	if (thread_slot == 0 || thread_slot > COUNTER_SLOTS)
		return;
	thread_ended = true;
	__atomic_fetch_add(&slots[thread_slot - 1].threads_ended, 1, __ATOMIC_RELAXED);
}

static void *map_raw(size_t bytes, int flags, int fd)
{
	/* Not mmap(), which memtrack would take for a call of the program. */
	long at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0L);

	return at == -1 ? NULL : (void *)at;
}

/* Runs at the first call of the image, when there is but one thread. */
static bool set_up(void)
{
	const char *path = getenv(COUNTER_ENV);
	char *file;
	void *page;
	int fd;

	passive = true;
	if (!path)
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC);
	file = fd < 0 ? NULL : map_raw(COUNTER_FILE_BYTES, MAP_SHARED, fd);
	if (fd >= 0)
		close(fd);
	page = map_raw(4096, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!file || !page || madvise(page, 4096, MADV_WIPEONFORK) ||
	    pthread_key_create(&end_key, on_thread_end)) {
		static const char text[] = "counter: cannot set up\n";

		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			abort();
		_exit(99);
	}
	next_slot = (uint32_t *)file;
	slots = (struct counter_slot *)(file + COUNTER_SLOT_BYTES);
	own_slot = page;
	passive = false;
	return true;
}

static struct counter_slot *claim_slot(void)
{
	uint32_t index = __atomic_fetch_add(next_slot, 1, __ATOMIC_RELAXED);
	struct timespec now;

	/* The file is full: the comparison sees that and fails. */
	if (index >= COUNTER_SLOTS)
		index = COUNTER_SLOTS - 1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!claimed_once)
		slots[index] = early;
	slots[index].pid = (uint32_t)syscall(SYS_getpid);
	slots[index].origin = claimed_once ? COUNTER_BY_FORK : COUNTER_BY_EXEC;
	slots[index].claim_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	claimed_once = true;
	__atomic_store_n(own_slot, index + 1, __ATOMIC_RELEASE);
	return &slots[index];
}

static void count(enum counter_kind kind, void *block, size_t bytes)
{
	struct counter_slot *slot;
	int saved_errno = errno;
	uint32_t own;

	counted++;
	last_block = block;
	if (!slots && !environ) {
		early.calls[kind]++;
		early.bytes[kind] += bytes;
		goto out;
	}
	if (passive || (!slots && !set_up()))
		goto out;
	own = __atomic_load_n(own_slot, __ATOMIC_ACQUIRE);
	slot = own ? &slots[own - 1] : claim_slot();
	__atomic_fetch_add(&slot->calls[kind], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&slot->bytes[kind], bytes, __ATOMIC_RELAXED);
	own = (uint32_t)(slot - slots) + 1;
	if (thread_slot != own && !thread_ended) {
		thread_slot = own;
		__atomic_fetch_add(&slot->threads_started, 1, __ATOMIC_RELAXED);
		depth++; /* a high key would allocate */
		pthread_setspecific(end_key, slot);
		depth--;
	}
out:
	errno = saved_errno;
}

/* Finds the next function of that name. It is there for all that libc has. */
static void *find_next(void **cache, const char *name)
{
	void *found = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (!found) {
		/* What dlsym takes for its message when there is none is our doing, not the
		 * program's. */
		depth++;
		looking = true;
		found = dlsym(RTLD_NEXT, name);
		looking = false;
		depth--;
		__atomic_store_n(cache, found, __ATOMIC_RELAXED);
	}
	return found;
}

/* Declares `next`, the function of that name that comes after ours. */
#define NEXT(name)          \
	static void *cache; \
	__typeof__(name) *next = (__typeof__(name) *)find_next(&cache, #name)

EXPORT void *malloc(size_t bytes)
{
	NEXT(malloc);
	void *block;

	depth++;
	block = next(bytes);
	if (--depth == 0 && block)
		count(COUNTER_MALLOC, block, bytes);
	return block;
}

EXPORT void *calloc(size_t members, size_t bytes)
{
	void *block;

	/* Before glibc 2.34 dlsym takes room for its message by calloc, gives it back when the
	 * thread ends, and does without if it gets none. */
	if (looking)
		return NULL;
	NEXT(calloc);

	depth++;
	block = next(members, bytes);
	if (--depth == 0 && block)
		count(COUNTER_CALLOC, block, members * bytes);
	return block;
}

static void count_realloc(void *old, void *block, size_t bytes)
{
	if (block)
		count(COUNTER_REALLOC, block, bytes);
	else if (old && bytes == 0)
		count(COUNTER_FREE, old, 0);
}

EXPORT void *realloc(void *old, size_t bytes)
{
	NEXT(realloc);
	void *block;

	depth++;
	block = next(old, bytes);
	if (--depth == 0)
		count_realloc(old, block, bytes);
	return block;
}

EXPORT void *reallocarray(void *old, size_t members, size_t bytes)
{
	NEXT(reallocarray);
	void *block;

	depth++;
	block = next(old, members, bytes);
	if (--depth == 0)
		count_realloc(old, block, members * bytes);
	return block;
}

EXPORT void free(void *block)
{
	NEXT(free);

	if (depth == 0 && block)
		count(COUNTER_FREE, block, 0);
	depth++;
	next(block);
	depth--;
}

EXPORT int posix_memalign(void **ret_block, size_t align, size_t bytes)
{
	NEXT(posix_memalign);
	int status;

	depth++;
	status = next(ret_block, align, bytes);
	if (--depth == 0 && status == 0 && *ret_block)
		count(COUNTER_ALIGNED, *ret_block, bytes);
	return status;
}

#define ALIGNED_TWO(name)                                     \
	EXPORT void *name(size_t align, size_t bytes)         \
	{                                                     \
		NEXT(name);                                   \
		void *block;                                  \
                                                              \
		depth++;                                      \
		block = next(align, bytes);                   \
		if (--depth == 0 && block)                    \
			count(COUNTER_ALIGNED, block, bytes); \
		return block;                                 \
	}

#define ALIGNED_ONE(name)                                     \
	EXPORT void *name(size_t bytes)                       \
	{                                                     \
		NEXT(name);                                   \
		void *block;                                  \
                                                              \
		depth++;                                      \
		block = next(bytes);                          \
		if (--depth == 0 && block)                    \
			count(COUNTER_ALIGNED, block, bytes); \
		return block;                                 \
	}

extern void *aligned_alloc(size_t align, size_t bytes);
extern void *memalign(size_t align, size_t bytes);
extern void *valloc(size_t bytes);
extern void *pvalloc(size_t bytes);
ALIGNED_TWO(aligned_alloc)
ALIGNED_TWO(memalign)
ALIGNED_ONE(valloc)
ALIGNED_ONE(pvalloc)

#ifndef COUNTER_WITHOUT_OPERATORS
/*
 * C++. An exception may pass through these, so they hold no state across the call. Where libstdc++
 * came by dlopen without RTLD_GLOBAL there is no next one: then they are malloc and free. To look
 * for what is not there makes dlsym allocate, which memtrack rightly records: a test of such
 * programs takes the counter that is built without operators.
 */
static bool seen_since(uint64_t before, const void *block)
{
	return counted != before && last_block == block;
}

#define NEW(name, kind, fallback, params, args)                        \
	extern void *name params;                                      \
	EXPORT void *name params                                       \
	{                                                              \
		NEXT(name);                                            \
		uint64_t before = counted;                             \
		void *block;                                           \
                                                                       \
		if (!next)                                             \
			return fallback;                               \
		block = next args;                                     \
		if (depth == 0 && block && !seen_since(before, block)) \
			count(kind, block, bytes);                     \
		return block;                                          \
	}

#define DELETE(name, params, args)                                     \
	extern void name params;                                       \
	EXPORT void name params                                        \
	{                                                              \
		NEXT(name);                                            \
		uint64_t before = counted;                             \
                                                                       \
		if (!next) {                                           \
			free(block);                                   \
			return;                                        \
		}                                                      \
		next args;                                             \
		if (depth == 0 && block && !seen_since(before, block)) \
			count(COUNTER_FREE, block, 0);                 \
	}

NEW(_Znwm, COUNTER_MALLOC, malloc(bytes), (size_t bytes), (bytes))
NEW(_Znam, COUNTER_MALLOC, malloc(bytes), (size_t bytes), (bytes))
NEW(_ZnwmRKSt9nothrow_t, COUNTER_MALLOC, malloc(bytes), (size_t bytes, const void *t), (bytes, t))
NEW(_ZnamRKSt9nothrow_t, COUNTER_MALLOC, malloc(bytes), (size_t bytes, const void *t), (bytes, t))
NEW(_ZnwmSt11align_val_t, COUNTER_ALIGNED, aligned_alloc(align, bytes),
    (size_t bytes, size_t align), (bytes, align))
NEW(_ZnamSt11align_val_t, COUNTER_ALIGNED, aligned_alloc(align, bytes),
    (size_t bytes, size_t align), (bytes, align))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, COUNTER_ALIGNED, aligned_alloc(align, bytes),
    (size_t bytes, size_t align, const void *t), (bytes, align, t))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, COUNTER_ALIGNED, aligned_alloc(align, bytes),
    (size_t bytes, size_t align, const void *t), (bytes, align, t))

DELETE(_ZdlPv, (void *block), (block))
DELETE(_ZdaPv, (void *block), (block))
DELETE(_ZdlPvm, (void *block, size_t bytes), (block, bytes))
DELETE(_ZdaPvm, (void *block, size_t bytes), (block, bytes))
DELETE(_ZdlPvRKSt9nothrow_t, (void *block, const void *t), (block, t))
DELETE(_ZdaPvRKSt9nothrow_t, (void *block, const void *t), (block, t))
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t align), (block, align))
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t align), (block, align))
DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t bytes, size_t align), (block, bytes, align))
DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t bytes, size_t align), (block, bytes, align))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t align, const void *t),
       (block, align, t))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t align, const void *t),
       (block, align, t))
#endif
