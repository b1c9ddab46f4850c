/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Zeroed memory straight from the kernel, for large tables of which little is used: only the pages
 * that were touched are there. (calloc clears memory that was used before, and so touches all.)
 */
#ifndef MT_COMMON_PAGES_H
#define MT_COMMON_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* NULL when out of memory. */
static inline void *mt_pages_new(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

/* `bytes` as given to mt_pages_new(); NULL is accepted. */
static inline void mt_pages_free(void *pages, size_t bytes)
{
	if (pages)
		munmap(pages, bytes);
}

#endif
