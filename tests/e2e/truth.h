/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What `exchange` knows of the true order of its events, and `order_judge` holds against the
 * artifact: a file, mapped shared, so that threads, forked children and no kind of end lose any of
 * it.
 *
 * Each allocation has a number that stands in the size which the program asks for, so in its
 * record:
 *
 *   TRUTH_MARK | number << TRUTH_BYTES_BITS | bytes really wanted
 *
 * libstrip or libtorture, behind memtrack's library, cut such a size down to its bytes. The thread
 * that got the block bumps a counter of its address, which it may do without an atomic, since it
 * owns the block: the value is the allocation's true place among those of the address, and goes
 * into the file at its number. Whoever frees the block writes who it is.
 *
 * Nothing here is shared with memtrack: that is the point of it.
 */
#ifndef MT_TESTS_E2E_TRUTH_H
#define MT_TESTS_E2E_TRUTH_H

#include <stdint.h>

#define TRUTH_ENV	 "MT_TRUTH"
#define TRUTH_MARK	 (UINT64_C(1) << 46) /* more than there is: no other block has such a size */
#define TRUTH_BYTES_BITS 12

struct truth_entry {
	uint32_t place; /* from 1; 0: the number was not used */
	int32_t freer;	/* thread that freed it; 0: nobody did, or a child that inherited it */
};

struct truth {
	uint64_t entries; /* of the file; a mapping has room for as many */
	uint64_t next;	  /* numbers given out */
	uint64_t frees;	  /* of numbered blocks, in all processes; a realloc frees its old one */
	uint64_t wrong_frees;
	uint64_t reserved[508];
	struct truth_entry entry[];
};

static inline int truth_is_marked(uint64_t size)
{
	return size >> 46 == 1;
}

static inline uint64_t truth_number(uint64_t size)
{
	return (size & (TRUTH_MARK - 1)) >> TRUTH_BYTES_BITS;
}

static inline uint64_t truth_bytes(uint64_t size)
{
	return size & ((1u << TRUTH_BYTES_BITS) - 1);
}

/* What libtorture does with the thread's next free; found by dlsym. */
#define TORTURE_NEXT_FREE "torture_next_free"
enum torture_free {
	TORTURE_FREE,	    /* gives the block to the partner */
	TORTURE_QUARANTINE, /* keeps it for a while before anybody gets it again */
	TORTURE_IGNORE,	    /* does nothing: the program may free what is not its own */
};
typedef void torture_next_free_fn(enum torture_free what);

#endif
