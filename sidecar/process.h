/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Processes of the tree, and what is written of them.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_PROCESS_H
#define MT_SIDECAR_PROCESS_H

#include "sidecar/order_impl.h"

struct mt_process *mt_process_find(const struct mt_order *order, int32_t pid);
/* The process, made when it is not known. NULL: out of memory. */
struct mt_process *mt_process_get(struct mt_order *order, int32_t pid);
/* Is all taken that is visible of its streams? */
bool mt_process_is_drained(const struct mt_process *process);
/* Its end, or that of its image, is asked for from our side. */
void mt_process_begin_end(const struct mt_order *order, struct mt_process *process, uint64_t stamp);
/* Did that happen, and is all taken that it said? No marker is to come from it then. */
bool mt_process_is_silent(const struct mt_order *order, struct mt_process *process);
/* The memory of a live process, made when there is none yet. NULL: out of memory. */
struct mt_space *mt_process_space(struct mt_order *order, struct mt_process *process);
void mt_process_apply(struct mt_order *order, const struct mt_kev_node *node);
/* Does the kernel tell of what the process does? NULL: of one that is not known. */
bool mt_process_is_told(const struct mt_order *order, const struct mt_process *process);
void mt_process_attach(struct mt_order *order, struct mt_image *image);
/*
 * The process that did something at `time_ns` when that was before its Exit, which was written
 * already: nothing of it can be told any more. NULL: there is no such process.
 */
struct mt_process *mt_process_ended_after(const struct mt_order *order, int32_t pid,
					  uint64_t time_ns);
/* The image gets no Exec: its process has ended. What was recorded in it is counted as lost. */
void mt_process_abandon(struct mt_process *process, struct mt_image *image);
/*
 * Is pid a live process that does not record through this image's segment? What the segment says of
 * it is then a lie: the slots are the program's to write.
 */
bool mt_process_is_others(const struct mt_order *order, int32_t pid, const struct mt_image *image);

/* Its process exits, or has exited, in the artifact: what was not read yet is counted as lost. */
void mt_reader_give_up(struct mt_order *order, struct mt_reader *reader);

void mt_processes_check(struct mt_order *order);
void mt_processes_free(struct mt_order *order);

static inline struct mt_order_process *mt_process_record(struct mt_order *order,
							 const struct mt_process *process)
{
	return &order->records[process->record];
}

#endif
