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
};

/*
 * Creates <pid>.MemtrackArtifact.msgpack in `where` (NULL: the current directory), or the file
 * `where` when it is not a directory. Never follows into an existing file but with `force`, and
 * never into one that another run is writing. Returns 0 or a negative errno, having said why.
 */
int mt_output_open(const char *where, bool force, pid_t root, struct mt_output *ret_output);

/* For a run that did not begin: no file is left, or where the name is not ours, an empty one. */
void mt_output_discard(struct mt_output *output);

#endif
