/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Run-time libraries of sanitizers, which have the allocator for themselves and insist on being
 * the first to be loaded. By name alone: no allocation, no state, safe in a vfork child.
 */
#ifndef MT_COMMON_SANITIZER_H
#define MT_COMMON_SANITIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* `name`: a file name without folders, or at least its first 15 characters. */
static inline bool mt_sanitizer_is(const char *name)
{
	static const char *const names[] = { "libasan.", "libtsan.", "libhwasan.", "liblsan.",
					     "libclang_rt." };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

/*
 * The file name of a sanitizer in a value of LD_PRELOAD, where it ends at a blank, a colon or the
 * end; NULL when there is none.
 */
static inline const char *mt_sanitizer_in(const char *preload)
{
	size_t len;

	for (; preload != NULL && *preload != '\0'; preload += len + (preload[len] != '\0')) {
		len = strcspn(preload, "/: \t");
		if (preload[len] != '/' && mt_sanitizer_is(preload))
			return preload;
	}
	return NULL;
}

#endif
