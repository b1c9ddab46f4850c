/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The file that a command makes: under its name stands what was there before, or all of the new
 * one, and never a part. Until it is whole it has a name of its own beside it, which is gone when
 * the work fails or a signal ends it. A link keeps leading to where it leads; what is replaced
 * gives its mode on.
 *
 * What cannot be replaced (a pipe, a device, standard output as "-" or by a path) is written
 * straight.
 *
 * Threads: one, and of a process one file at a time.
 */
#ifndef MT_TOOLS_NEW_FILE_H
#define MT_TOOLS_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>

struct mt_new_file {
	int fd;
	bool is_stdout;	     /* what else is printed must not go there */
	bool may_replace;    /* what has come to its name meanwhile */
	bool replaces;	     /* something that was there */
	char path[PATH_MAX]; /* where it will be, links followed; empty: it is written straight */
};

/*
 * An existing file is an error (-EEXIST) unless `force`. Returns 0 or a negative errno; *ret_why
 * says it better than the errno where it is not NULL.
 */
int mt_new_file_open(struct mt_new_file *file, const char *name, bool force, const char **ret_why);
/* It is whole: gives it its name, or fails as open() does and removes it. */
int mt_new_file_keep(struct mt_new_file *file, const char **ret_why);
/* It is not to be. */
void mt_new_file_drop(struct mt_new_file *file);

#endif
