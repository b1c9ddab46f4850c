/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The modules of each process over time, out of Mapping, Fork and Exec events in
 * order. A child begins with what its parent had at the fork; an exec begins
 * with none.
 *
 * Memory: one entry an event, and the paths of the mappings.
 *
 * Threads: one owner.
 */
#ifndef MT_TOOLS_MODULE_TABLE_H
#define MT_TOOLS_MODULE_TABLE_H

#include <stddef.h>

#include "common/event.h"

struct mt_module_table;

struct mt_module_table *mt_module_table_new(void);
void mt_module_table_free(struct mt_module_table *table);

/* Both: 0 or -ENOMEM. */
int mt_module_table_add(struct mt_module_table *table, const struct mt_event *events, size_t n);

/* Prints all of it to standard output; times count from the first event that was added. */
int mt_module_table_print(const struct mt_module_table *table);

#endif
