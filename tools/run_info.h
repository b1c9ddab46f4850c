/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the recorder says of a run, out of the metadata that common/run_meta.h names. All of it may
 * be absent, and none of it is trusted: it is shown, and compared, never used as a size or index.
 *
 * Threads: one. Values point into the reader and end with it.
 */
#ifndef MT_TOOLS_RUN_INFO_H
#define MT_TOOLS_RUN_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/artifact_reader.h"
#include "common/run_meta.h"
#include "tools/u64_map.h"

#define MT_RUN_LOSSES 16u

struct mt_run_loss {
	char cause[32];
	uint64_t count;
};

struct mt_run_process {
	struct mt_meta_value map;
	uint32_t next; /* entry of the same pid, from 1; 0: none */
};

struct mt_run_info {
	const struct mt_artifact_reader *reader;
	bool has_open;
	bool has_closed;
	bool repaired; /* memtrack repair could not save all of the file that it was made of */
	struct mt_meta_value open;   /* the first */
	struct mt_meta_value closed; /* the last */
	bool losses_known;
	uint64_t lost; /* of all causes */
	size_t losses_count;
	struct mt_run_loss losses[MT_RUN_LOSSES];
	uint64_t spoiled; /* threads whose buffers were damaged: what was left in them is not known
			   */
	uint64_t unread;  /* threads that the recorder had no memory to read */
	bool untracked_known;
	uint64_t untracked;			/* listed */
	uint64_t unheard;			/* programs that could not register: in no list */
	uint64_t anomalies[MT_ANOMALY_REASONS]; /* flagged, as counted by the recorder */
	struct mt_u64_map listed;		/* of them: place -> reason */
	struct mt_run_process *processes;
	size_t processes_count, processes_cap;
	struct mt_u64_map pids; /* pid -> place of its next entry in processes, from 1 */
};

/* Reads all metadata that the reader has passed. Returns 0 or -ENOMEM. */
int mt_run_info_init(struct mt_run_info *info, const struct mt_artifact_reader *reader);
void mt_run_info_fini(struct mt_run_info *info);

/* True when the recorder says that nothing was lost and nothing ran untracked, and all is there. */
bool mt_run_info_complete(const struct mt_run_info *info);

/* The recorder's reason for flagging this event, or -1. */
int mt_run_info_flagged(const struct mt_run_info *info, uint64_t frame, uint64_t index);
const char *mt_anomaly_name(int reason);

/* What a cause of losses is, in the recorder's words; NULL: a newer one knows it. */
const char *mt_run_loss_text(const struct mt_run_loss *loss);

/* The next untracked image of all "closed" frames: starts from a zeroed walk. */
struct mt_untracked_walk {
	size_t frame;
	bool inside;
	struct mt_meta_iter it;
};
bool mt_run_info_untracked(const struct mt_run_info *info, struct mt_untracked_walk *walk,
			   struct mt_meta_value *ret_image);

/*
 * What the recorder says of a process; false when nothing. Entries of a pid that was used again are
 * given one after the other, as its lives follow each other.
 */
bool mt_run_info_take_process(struct mt_run_info *info, int32_t pid,
			      struct mt_meta_value *ret_process);

#endif
