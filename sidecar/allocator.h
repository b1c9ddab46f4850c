/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Does a program's executable bring an allocator of its own? One that defines malloc for others
 * says so itself when it meets us. One that keeps it to itself, hidden or under another name as
 * Rust's and others' allocators are, can only be told by the symbols in its file, if it has any.
 *
 * Threads: one at a time for each object.
 */
#ifndef MT_SIDECAR_ALLOCATOR_H
#define MT_SIDECAR_ALLOCATOR_H

#include <stdbool.h>
#include <sys/types.h>

struct mt_allocator; /* remembers the files that were looked at last */

/* NULL when out of memory. */
struct mt_allocator *mt_allocator_new(void);
void mt_allocator_free(struct mt_allocator *allocator);

/* What cannot be read has none; a NULL object never knows of any. */
bool mt_allocator_is_own(struct mt_allocator *allocator, pid_t pid);

/* The same for an open file, without memory. */
bool mt_allocator_in_file(int fd);

#endif
