/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libstrip: stands between memtrack's library and the allocator and cuts sizes that carry a number
 * (truth.h) down to the bytes that are wanted. It does nothing else, so that the allocator hands
 * blocks over as fast as by itself.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/e2e/truth.h"

#define EXPORT __attribute__((visibility("default")))

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
	if (__builtin_expect(!next_realloc, 0))
		find_all();
	return next_realloc(old, stripped(size));
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
}
