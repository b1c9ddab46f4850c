/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Serves allocations that come before we can ask anybody: while ld.so has not yet relocated this
 * library (resolvers of indirect functions in other libraries may allocate), and while the look-up
 * runs. A static arena whose blocks are never reused.
 *
 * The blocks may later reach free and realloc through the real ones. When any block has been handed
 * out, mt_early_guard_real puts functions before the next allocator's that know them; otherwise the
 * hooks pay nothing. A block that is still live when recording begins is recorded then.
 */
#ifndef MT_PRELOAD_EARLY_H
#define MT_PRELOAD_EARLY_H

#include <stdbool.h>
#include <stddef.h>

/* False until ld.so has relocated this library. */
bool mt_early_is_relocated(void);

/* Zeroed memory; `align` is a power of two. NULL when the arena is used up; errno is not set. */
void *mt_early_alloc(size_t size, size_t align);
void mt_early_free(void *block);
void *mt_early_realloc(void *block, size_t size);

/* Called at the end of the look-up, before its results are used. */
void mt_early_guard_real(void);

/* Calls `tell` for each block that is live. */
void mt_early_each_live(void (*tell)(void *context, const void *block, size_t size), void *context);

#endif
