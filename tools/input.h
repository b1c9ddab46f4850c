/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The artifact that a command reads: says on stderr, with the file's name, what is wrong with it,
 * and, where that is wanted, goes on behind damage as far as it can. Reads with all processors, and
 * shows on a terminal how far it is.
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

/* What the user may choose about the reading. */
struct mt_input_options {
	bool no_hints;
	bool one_thread;
	bool keep_going; /* skip damaged frames instead of ending at the first */
};

/* For the getopt_long() table of a command that reads an artifact, and its help. */
#define MT_INPUT_NO_HINTS_OPTION                               \
	{                                                      \
		"no-hints", no_argument, NULL, MT_OPT_NO_HINTS \
	}
#define MT_INPUT_KEEP_GOING_OPTION                                 \
	{                                                          \
		"keep-going", no_argument, NULL, MT_OPT_KEEP_GOING \
	}

struct mt_input {
	const char *command; /* "memtrack stat" */
	const char *name;    /* of the file, for messages */
	struct mt_artifact_reader *reader;
	struct mt_diag damages[MT_INPUT_DAMAGES];
	uint64_t damaged; /* frames */
	uint64_t missing; /* events of damaged frames that were not given, as far as known */
	uint64_t missing_unknown; /* damaged frames of which it is not known */
	struct mt_input_options options;
	bool given;	    /* a batch, at least one */
	bool stopped;	    /* at damage, by the options */
	struct mt_diag cut; /* kind MT_DIAG_NONE: the file does not end inside a frame, or half */
	bool half;	    /* it does, in one that is being written */
	bool gap;	    /* set when events are missing before the batch that was given */
	int error;	    /* what made the reading fail for good, or 0 */
	bool needs_whole;   /* the command cannot go on behind damage */
	bool copies;	    /* the command's: its file lacks what is half written in ours */
	bool writes_as_it_reads; /* the command's: no progress on a terminal that has its output */
	bool progress;		 /* stderr is a terminal */
	bool progress_shown;	 /* there is a line to be wiped */
	uint64_t progress_ns;	 /* when it is shown next */
};

/* Path "-" is standard input. Returns 0, or a negative errno having said why: also of an empty
 * file. */
int mt_input_open(struct mt_input *input, const char *command, const char *path);
/* The same, for who waits for the recorder: a file that is empty yet is none to complain about. */
int mt_input_open_early(struct mt_input *input, const char *command, const char *path);
/* Before the first next(). */
void mt_input_use(struct mt_input *input, const struct mt_input_options *options);
/* Takes an option of getopt_long() if it is one of these; returns whether it was. */
bool mt_input_take_option(struct mt_input_options *options, int option);
void mt_input_close(struct mt_input *input);

/* 1 with a batch, 0 at the end or where damage stopped it, or a negative errno, said. */
int mt_input_next(struct mt_input *input, struct mt_artifact_batch *ret_batch);

enum mt_input_state mt_input_state(const struct mt_input *input);

/*
 * After the end: says what is to be said of the file as a whole (cut, events of unknown types, not
 * closed). Returns MT_EXIT_DONE, MT_EXIT_DAMAGED or MT_EXIT_FAILED.
 */
int mt_input_verdict(struct mt_input *input);

/*
 * For who has read all of it: are these as many events as its recorder says it wrote? Whole frames
 * that are missing, or are there twice, need not contradict anything. Says it if not, and returns
 * MT_EXIT_DAMAGED; else, and where nothing is known, MT_EXIT_DONE.
 */
int mt_input_count(const struct mt_input *input, uint64_t events);

#endif
