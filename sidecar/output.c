/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/format.h"
#include "sidecar/child.h"
#include "sidecar/say.h"

#define SAME_NAME_MAX 9999

static int create(struct mt_output *output)
{
	int fd = open(output->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);

	if (fd < 0)
		return -errno;
	output->fd = mt_move_fd_high(fd);
	output->made = true;
	return 0;
}

/* Numbers of processes repeat, in containers every time: the next free name is taken. */
static int open_in(const char *directory, pid_t root, struct mt_output *output)
{
	const char *slash = !*directory || directory[strlen(directory) - 1] == '/' ? "" : "/";
	int n, err, copy;

	for (copy = 1; copy <= SAME_NAME_MAX; copy++) {
		char number[16] = "";

		if (copy > 1)
			snprintf(number, sizeof(number), "-%d", copy);
		n = snprintf(output->path, sizeof(output->path), "%s%s%d%s" MT_ARTIFACT_SUFFIX,
			     directory, slash, (int)root, number);
		if (n >= (int)sizeof(output->path))
			return -ENAMETOOLONG;
		err = create(output);
		if (err != -EEXIST) {
			output->renamed = copy > 1;
			return err;
		}
	}
	return -EEXIST;
}

static int open_existing(struct mt_output *output, bool force)
{
	struct stat st;
	int fd;

	if (stat(output->path, &st) < 0)
		return -errno;
	/* Opening a pipe waits for its reader, and it could not be cut back to whole frames. */
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) {
		mt_say_error("%s is a pipe: the artifact needs a file", output->path);
		return -ESPIPE;
	}
	/* A device holds nothing that could be lost. */
	if (S_ISREG(st.st_mode) && !force) {
		mt_say_error("%s exists: choose another name, or replace it with --force",
			     output->path);
		return -EEXIST;
	}
	fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_TRUNC);
	if (fd < 0)
		return -errno;
	output->fd = mt_move_fd_high(fd);
	return 0;
}

int mt_output_open(const char *where, bool force, pid_t root, struct mt_output *ret_output)
{
	struct stat st;
	int err;

	memset(ret_output, 0, sizeof(*ret_output));
	ret_output->fd = -1;
	if (where && !strcmp(where, "-")) {
		mt_say_error(
			"-o -: the artifact needs a file, not standard output (./- names one)");
		return -ESPIPE;
	}
	if (!where) {
		err = open_in("", root, ret_output);
	} else if (where[strlen(where) - 1] == '/' ||
		   (stat(where, &st) == 0 && S_ISDIR(st.st_mode))) {
		err = open_in(where, root, ret_output);
	} else if (strlen(where) >= sizeof(ret_output->path)) {
		err = -ENAMETOOLONG;
	} else {
		strcpy(ret_output->path, where);
		err = create(ret_output);
		if (err == -EEXIST) {
			err = open_existing(ret_output, force);
			if (err == -EEXIST || err == -ESPIPE)
				return err;
		}
	}
	if (err)
		mt_say_error("cannot create %s: %s (choose a place with -o)",
			     ret_output->path[0] ? ret_output->path : where, strerror(-err));
	return err;
}

void mt_output_discard(struct mt_output *output)
{
	if (output->fd >= 0)
		close(output->fd);
	output->fd = -1;
	if (output->made)
		unlink(output->path);
	output->made = false;
}
