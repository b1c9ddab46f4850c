/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which events `memtrack dump` prints: those that match every kind of filter that was given, and
 * of each kind one of its values.
 *
 * Threads: one.
 */
#ifndef MT_TOOLS_DUMP_FILTER_H
#define MT_TOOLS_DUMP_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

struct mt_number_list {
	int32_t *numbers;
	size_t count;
};

/* A bound in time: absolute, or after the first event of the file. */
struct mt_time_bound {
	bool given;
	bool relative;
	uint64_t ns;
};

struct mt_dump_filter {
	struct mt_number_list pids;
	struct mt_number_list tids;
	uint32_t types; /* bit by type; 0: all */
	struct mt_time_bound from, to;
};

void mt_dump_filter_fini(struct mt_dump_filter *filter);

/*
 * Each adds the value of one option; lists are separated by commas. Return 0, -EINVAL for a value
 * that is none, with the part that is wrong in ret_bad, or -ENOMEM.
 */
int mt_dump_filter_numbers(struct mt_number_list *list, const char *value, const char **ret_bad);
int mt_dump_filter_types(struct mt_dump_filter *filter, const char *value, const char **ret_bad);

/* "123" is absolute nanoseconds; "1.5s", "20ms", "7us" and "9ns" are after the first event. */
int mt_time_bound_parse(struct mt_time_bound *bound, const char *value);

/* The first event's time is known: bounds after it become absolute. */
void mt_dump_filter_start(struct mt_dump_filter *filter, uint64_t first_ns);

/* True when there is nothing to filter. */
bool mt_dump_filter_is_empty(const struct mt_dump_filter *filter);

bool mt_dump_filter_matches(const struct mt_dump_filter *filter, const struct mt_event *event);

#endif
