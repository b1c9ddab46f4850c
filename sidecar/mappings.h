/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The executable file mappings that a process has already, from /proc/PID/maps: for images whose
 * exec came before the kernel's sources were opened, or on a kernel that tells of none.
 *
 * Threads: a list has one owner at a time.
 */
#ifndef MT_SIDECAR_MAPPINGS_H
#define MT_SIDECAR_MAPPINGS_H

#include <sys/types.h>

#include "sidecar/kernel.h"

struct mt_mappings {
	struct mt_mappings *next; /* in the owner's list */
	size_t count;
	struct mt_kev *events; /* MT_KEV_MAPPING, in the order of their addresses; no times */
};

/*
 * Returns 0, with NULL when there are none, or a negative errno: they cannot be read, or not all of
 * them, and the list has those that could.
 */
int mt_mappings_read(pid_t pid, struct mt_mappings **ret_mappings);

/* One line of the file: fills ret_event, whose path is in `line`. False: not such a mapping. */
bool mt_mappings_parse(char *line, struct mt_kev *ret_event);

/* NULL is accepted. */
void mt_mappings_free(struct mt_mappings *mappings);

#endif
