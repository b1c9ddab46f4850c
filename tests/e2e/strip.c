/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libstrip: stands between memtrack's library and the allocator and cuts sizes that carry a number
 * (truth.h) down to the bytes that are wanted. Now and then a thread falls asleep in it when it has
 * given a block to the allocator, for longer than memtrack parks a record: others get the block
 * meanwhile, and who tells of a free too late is found out. Else it does nothing, so that the
 * allocator hands blocks over as fast as by itself.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "tests/e2e/truth.h"

#define EXPORT __attribute__((visibility("default")))

#define SLEEPS	 256u  /* frees between two */
#define SLEEP_NS 80000 /* more than a record is parked for */

/* There before the first call of another thread: libc allocates before main. */
static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static void (*next_free)(void *);

static __attribute__((noinline, cold)) void find_all(void)
{
	*(void **)&next_free = dlsym(RTLD_NEXT, "free");
	*(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
	*(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
	*(void **)&next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	*(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
	if (!next_malloc || !next_calloc || !next_realloc || !next_aligned_alloc || !next_free)
		abort();
}

static void sleep_sometimes(void)
{
	static __thread uint32_t given __attribute__((tls_model("initial-exec")));
	static const struct timespec pause = { .tv_nsec = SLEEP_NS };

	if (++given % SLEEPS == 0)
		nanosleep(&pause, NULL);
}

static size_t stripped(size_t size)
{
	return truth_is_marked(size) ? (size_t)truth_bytes(size) : size;
}

EXPORT void *malloc(size_t size)
{
	if (__builtin_expect(!next_malloc, 0))
		find_all();
	return next_malloc(stripped(size));
}

EXPORT void *calloc(size_t count, size_t each)
{
	if (__builtin_expect(!next_calloc, 0))
		find_all();
	return next_calloc(count, stripped(each));
}

EXPORT void *realloc(void *old, size_t size)
{
	void *block;

	if (__builtin_expect(!next_realloc, 0))
		find_all();
	block = next_realloc(old, stripped(size));
	if (block != old)
		sleep_sometimes();
	return block;
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	if (__builtin_expect(!next_aligned_alloc, 0))
		find_all();
	return next_aligned_alloc(align, stripped(size));
}

EXPORT void free(void *block)
{
	if (__builtin_expect(!next_free, 0))
		find_all();
	next_free(block);
	sleep_sometimes();
}
