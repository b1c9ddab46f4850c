/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What comes next in line for each of our hooks.
 *
 * The look-up walks the loaded objects behind us, in load order, which is the order of the global
 * scope, and reads their symbol tables itself: dlsym allocates, locks, and has a new version in
 * glibc 2.34. Until the look-up the heap functions of the table are ones that do it first, so a
 * hook calls through the table without a test.
 *
 * Threads: constant after the first look-up. Two threads that look up at once store the same.
 */
#ifndef MT_PRELOAD_REAL_H
#define MT_PRELOAD_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "preload/hook_names.h"

#define MT_REAL_MEMBER(result, member, symbol, arguments) result(*member) arguments;
struct mt_real {
	MT_REAL_ALL(MT_REAL_MEMBER)
};
#undef MT_REAL_MEMBER

/* Where an object lies: [from, to). */
struct mt_range {
	uintptr_t from;
	uintptr_t to;
};

struct mt_objects {
	struct mt_range self;
	struct mt_range executable;
	struct mt_range heap; /* the object whose malloc is next in line */
	struct mt_range libc;
	struct mt_range linker;	 /* ld.so */
	const char *self_path;	 /* as ld.so loaded us */
	void *clock_gettime;	 /* libc's; NULL: not found */
	bool executable_defines; /* the executable has a malloc of its own: we are not asked */
};

#define MT_REAL_INDEX(member) (offsetof(struct mt_real, member) / sizeof(void *))

extern struct mt_real mt_real;
extern struct mt_objects mt_objects;

/* Looks everything up, once. Returns false when this thread is in the middle of that. */
bool mt_real_resolve(void);

/*
 * Do the program's calls of malloc come to us? A library in front of us in LD_PRELOAD takes them,
 * and may pass them on (a counter, say) or not (an allocator); valgrind redirects them. `may_call`:
 * its malloc may be tried, since nothing is in the middle of a call of it; where that is not so,
 * the answer is no unless one came. After the look-up, under MT_GUARD_CALL.
 */
bool mt_real_is_reached(bool may_call);

/*
 * A function of the table. One that no object had at first is looked up anew: what a library brings
 * that was loaded later. That of the object that `caller` lies in comes first: libraries may keep
 * one of that name each to themselves. Stored in the table only when its library stays for good.
 * NULL when there is none.
 */
void *mt_real_find(size_t index, const void *caller);

/*
 * For a name that the next heap need not have (free_sized, cfree): a library's own function of that
 * name, with which its callers mean something else. `caller`: as above. NULL: there is none.
 */
void *mt_real_find_others(size_t index, const void *caller);

/* True when the two functions, by index, come from one object. */
bool mt_real_same_owner(size_t left, size_t right);

static inline bool mt_range_has(const struct mt_range *range, const void *address)
{
	return (uintptr_t)address - range->from < range->to - range->from;
}

#endif
