/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The artifact that a command reads: says on stderr, with the file's name, what is wrong with it,
 * and goes on behind damage as far as it can.
 *
 * Threads: one.
 */
#ifndef MT_TOOLS_INPUT_H
#define MT_TOOLS_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/artifact_reader.h"

/* So many damaged frames are kept (and said); all are counted. */
#define MT_INPUT_DAMAGES 20u

enum mt_input_state {
	MT_INPUT_UNKNOWN, /* no metadata of ours: another writer's file */
	MT_INPUT_CLOSED,  /* finished by its recorder */
	MT_INPUT_OPEN,	  /* still being written, or its recorder was killed */
};

struct mt_input {
	const char *command; /* "memtrack stat" */
	const char *name;    /* of the file, for messages */
	struct mt_artifact_reader *reader;
	struct mt_diag damages[MT_INPUT_DAMAGES];
	uint64_t damaged;   /* frames */
	struct mt_diag cut; /* kind MT_DIAG_NONE: the file ends behind a whole frame */
	bool gap;	    /* set when events are missing before the batch that was given */
	int error;	    /* what made the reading fail for good, or 0 */
};

/* Path "-" is standard input. Returns 0, or a negative errno having said why. */
int mt_input_open(struct mt_input *input, const char *command, const char *path);
void mt_input_close(struct mt_input *input);

/* 1 with a batch, 0 at the end, or a negative errno, said. */
int mt_input_next(struct mt_input *input, struct mt_artifact_batch *ret_batch);

enum mt_input_state mt_input_state(const struct mt_input *input);

/*
 * After the end: says what is to be said of the file as a whole (cut, events of unknown types, not
 * closed). Returns MT_EXIT_DONE, MT_EXIT_DAMAGED or MT_EXIT_FAILED.
 */
int mt_input_verdict(const struct mt_input *input);

#endif
