/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which events of an artifact are wanted.
 *
 * Thread rule: values.
 */
#ifndef MT_COMMON_ARTIFACT_FILTER_H
#define MT_COMMON_ARTIFACT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

struct mt_artifact_filter {
	uint32_t types; /* bits 1 << enum mt_event_type */
	uint64_t from_ns;
	uint64_t to_ns;
	const int32_t *pids; /* the caller's, as long as the reader lives; NULL: all */
	size_t pids_n;
	/*
	 * Where nothing but Mapping, Fork and Exec is wanted, a frame's content may be searched for
	 * them instead of decoded (event_search.h), which is several times faster. What else is in
	 * the frame is then neither checked nor counted, but for what its hint says of them and of
	 * Exit and Stack.
	 */
	bool search;
};

/* What `search` can find. */
#define MT_EVENT_SEARCHED (1u << MT_EVENT_MAPPING | 1u << MT_EVENT_FORK | 1u << MT_EVENT_EXEC)

static inline bool mt_artifact_filter_wants(const struct mt_artifact_filter *filter,
					    const struct mt_event *e)
{
	if (!(filter->types & 1u << e->type) || e->timestamp_ns < filter->from_ns ||
	    e->timestamp_ns > filter->to_ns)
		return false;
	for (size_t i = 0; i < filter->pids_n; i++)
		if (filter->pids[i] == e->pid)
			return true;
	return !filter->pids;
}

#endif
