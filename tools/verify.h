/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What `memtrack verify` has found, for its two ways of printing it. Private to the command.
 */
#ifndef MT_TOOLS_VERIFY_H
#define MT_TOOLS_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "tools/excused.h"
#include "tools/input.h"
#include "tools/replay.h"
#include "tools/run_info.h"

/* A finding, kept until the anomalies that the recorder listed have been read. */
struct mt_verify_place {
	struct mt_finding finding;
	struct mt_event event;
};

struct mt_verify {
	struct mt_input input;
	struct mt_replay *replay;
	struct mt_run_info info;
	struct mt_excused excused;
	struct mt_verify_place *places;
	size_t limit;
	unsigned threads;
	bool require_complete;
	size_t places_count;
	uint64_t unread_events; /* behind the first damage */
};

/* All of them that dropped records do not excuse. */
uint64_t mt_verify_contradictions(const struct mt_verify *verify);

/* Both return an exit status. */
int mt_verify_print_text(const struct mt_verify *verify, const char *verdict);
int mt_verify_print_json(const struct mt_verify *verify, const char *verdict);

#endif
