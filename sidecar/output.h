/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where the artifact goes: its name and its file.
 *
 * Threads: one.
 */
#ifndef MT_SIDECAR_OUTPUT_H
#define MT_SIDECAR_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct mt_output {
	int fd;
	char path[PATH_MAX]; /* as the user would write it */
	bool made;	     /* the file is ours alone: it may be removed again */
	bool renamed;	     /* the usual name was taken */
	/* What --force replaces stays until the run has begun. */
	char target[PATH_MAX];	  /* its name, links followed */
	char temporary[PATH_MAX]; /* that of our file until then; empty: it has its own */
	int old_fd;		  /* keeps other runs away from it */
};

/*
 * Creates <pid>.MemtrackArtifact.msgpack in `where` (NULL: the current directory), or the file
 * `where` when it is not a directory. Never follows into an existing file but with `force`, and
 * never into one that another run is writing. What is replaced is there until begun(), if the
 * folder that it is in can be written. Returns 0 or a negative errno, having said why.
 */
int mt_output_open(const char *where, bool force, pid_t root, struct mt_output *ret_output);

/* The run has begun: its file takes the place of the one that it replaces. */
void mt_output_begun(struct mt_output *output);

/*
 * What has happened to the file meanwhile: NULL, or words that go on from its name. `disturbed`:
 * others have written to it.
 */
const char *mt_output_trouble(const struct mt_output *output, bool disturbed);

/*
 * For a run that did not begin: what was there before, or no file; where the old one could not be
 * kept and its name is not ours, an empty one.
 */
void mt_output_discard(struct mt_output *output);

#endif
