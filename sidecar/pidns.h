/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Numbers of other PID namespaces, and which process a forked child's slot is of where its number
 * does not say: the child says what it calls itself, its parent what the parent calls it, and the
 * number of the fork is what both of them know.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_PIDNS_H
#define MT_SIDECAR_PIDNS_H

#include "sidecar/order_impl.h"

/* The slot that a child was forked from; NULL when it is unknown, or somebody else's by now. */
const struct mt_bind *mt_pidns_parent(const struct mt_bind *bind);
/* Keeps what the parent's slot tells of its child: the parent may be gone before the child's turn.
 */
void mt_pidns_note_parent(struct mt_bind *bind);
/* The parent as we see it; the image's process where it is not known. */
static inline int32_t mt_pidns_parent_pid(const struct mt_bind *bind)
{
	return bind->parent_pid != 0 ? bind->parent_pid : bind->image->pid;
}

/* What the process of a slot is called here, as far as is known. */
static inline int32_t mt_pidns_number(const struct mt_bind *bind)
{
	return bind->pid != 0 ? bind->pid : bind->claim.pid;
}

/* The child `process` was made by this fork: its slot, when it has one, is known by that. */
void mt_pidns_tell(struct mt_order *order, struct mt_process *process,
		   const struct mt_birth *birth);
/* The slot that waits and was claimed by the child of this fork; NULL: none yet. */
struct mt_bind *mt_pidns_slot(const struct mt_order *order, const struct mt_image *image,
			      const struct mt_birth *birth);
/* Takes up what was told of the slot's process before the slot was there. */
void mt_pidns_hear(struct mt_order *order, struct mt_bind *bind);
/* The newest child of a thread that no fork() has told of; 0: cannot be told. */
int32_t mt_pidns_newest_child(const struct mt_order *order, const struct mt_process *parent,
			      int32_t parent_tid, uint64_t stamp);
/* May the slot be of this process, as far as is known? */
bool mt_pidns_may_be(const struct mt_order *order, const struct mt_process *process,
		     const struct mt_bind *bind);
/* What the slot's process is called here, by all means there are; 0: cannot be told now. */
int32_t mt_pidns_find(struct mt_order *order, const struct mt_bind *bind);

#define MT_PIDNS_HEADS 256u

/* Processes without a slot, by the number that they have for themselves in another namespace. */
struct mt_pidns_slotless {
	struct mt_process *heads[MT_PIDNS_HEADS];
};

void mt_pidns_find_slotless(const struct mt_order *order, struct mt_pidns_slotless *ret_slotless);
/* The process of a forked child's slot: it has the segment by inheritance and no slot yet. */
struct mt_process *mt_pidns_match(struct mt_order *order, struct mt_bind *bind,
				  const struct mt_pidns_slotless *slotless);

/*
 * Numbers of another PID namespace, by /proc; 0: cannot be told. The search is long, so a round
 * spends a bounded time on it; what is asked for after that cannot be told.
 */
int32_t mt_pidns_tid(struct mt_order *order, int32_t pid, int32_t ns_tid);
/* The child that `parent_pid` calls `ns_pid`. */
int32_t mt_pidns_child(struct mt_order *order, int32_t parent_pid, int32_t ns_pid);

#endif
