/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From where a call came: all its callers, as one number that is the same in each run of a program.
 * For libfault, which is preloaded: nothing here allocates.
 */
#ifndef MT_TESTS_E2E_FAULT_SITE_H
#define MT_TESTS_E2E_FAULT_SITE_H

#include <stdint.h>

/* Once, before any other thread is there. */
void site_init(void);

/* Never 0. Who calls itself counts as one caller, however often. */
uint64_t site_find(void);

/* Counts a call of that number (an index) from a site. */
void site_count(int call, uint64_t site);

/* Writes a line for each call and site: the name of the call, the site, how often. */
void site_write(const char *path, const char *(*name_of)(int call));

#endif
