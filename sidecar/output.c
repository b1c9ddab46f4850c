/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/format.h"
#include "sidecar/child.h"
#include "sidecar/say.h"

#define SAME_NAME_MAX 9999

/* Two runs in one file would make it useless. Where files cannot be locked, nobody can tell. */
static int keep_others_out(const struct mt_output *output, int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	mt_say_error("%s is being written by another run: choose another name", output->path);
	return -EBUSY;
}

static int create(struct mt_output *output)
{
	int fd = open(output->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);

	if (fd < 0)
		return -errno;
	if (keep_others_out(output, fd)) {
		close(fd);
		return -EBUSY;
	}
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

/* Takes the name of a file in the folder of what is replaced. */
static int make_beside(struct mt_output *output, const struct stat *old)
{
	const char *slash;
	int fd;

	if (!realpath(output->path, output->target))
		return -errno;
	slash = strrchr(output->target, '/');
	if (!slash || snprintf(output->temporary, sizeof(output->temporary), "%.*s.memtrack-XXXXXX",
			       (int)(slash - output->target) + 1,
			       output->target) >= (int)sizeof(output->temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(output->temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* It belongs to whom the old one did, and is as open, as far as we may. */
	if ((old->st_uid != geteuid() || old->st_gid != getegid()) &&
	    fchown(fd, old->st_uid, old->st_gid) < 0)
		errno = 0;
	if (fchmod(fd, old->st_mode & 0777) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		errno = 0;
	return fd;
}

/* `fd` is the file that is replaced, open and locked. Takes it over. */
static int replace(struct mt_output *output, int fd, const struct stat *old)
{
	struct stat st;
	int beside;

	/* The run that had it locked until now may have put another one in its place. */
	if (stat(output->path, &st) < 0 || st.st_ino != old->st_ino || st.st_dev != old->st_dev) {
		mt_say_error("%s was just made by another run: choose another name", output->path);
		close(fd);
		return -EBUSY;
	}
	beside = make_beside(output, old);
	if (beside >= 0) {
		output->old_fd = mt_move_fd_high(fd);
		output->fd = mt_move_fd_high(beside);
		return 0;
	}
	/* Only the file itself may be written: then it is gone from here on. */
	output->temporary[0] = '\0';
	if (ftruncate(fd, 0) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	output->made = lstat(output->path, &st) == 0 && S_ISREG(st.st_mode);
	output->fd = mt_move_fd_high(fd);
	return 0;
}

static int open_existing(struct mt_output *output, bool force)
{
	struct stat st;
	int fd, err = 0;

	if (stat(output->path, &st) < 0) {
		err = -errno;
		/* Never made through: who can place a link would choose what we write to. */
		if (lstat(output->path, &st) < 0 || !S_ISLNK(st.st_mode))
			return err;
		mt_say_error("%s is a symbolic link that leads nowhere: remove it, or choose "
			     "another name",
			     output->path);
		return -EEXIST;
	}
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
	fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		output->fd = mt_move_fd_high(fd);
		return 0;
	}
	err = keep_others_out(output, fd);
	if (!err && fstat(fd, &st) < 0)
		err = -errno;
	if (!err)
		return replace(output, fd, &st);
	close(fd);
	return err;
}

/* Ours are others than the caller's: what is written there would be gone. */
static bool is_descriptor(const char *where)
{
	static const char *const names[] = { "-",	    "/dev/stdin", "/dev/stdout",
					     "/dev/stderr", "/dev/fd/",	  "/proc/self/fd/" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (strncmp(where, names[i], len) == 0 &&
		    (names[i][len - 1] == '/' || where[len] == '\0'))
			return true;
	}
	return false;
}

int mt_output_open(const char *where, bool force, pid_t root, struct mt_output *ret_output)
{
	struct stat st;
	int err;

	memset(ret_output, 0, sizeof(*ret_output));
	ret_output->fd = -1;
	ret_output->old_fd = -1;
	if (where && is_descriptor(where)) {
		mt_say_error(
			"--output=%s: the artifact needs a file of its own, not a descriptor%s",
			where, strcmp(where, "-") ? "" : " (./- names one)");
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
	if (err && err != -EBUSY)
		mt_say_error("cannot create %s: %s (choose a place with -o)",
			     ret_output->path[0] ? ret_output->path : where, strerror(-err));
	return err;
}

void mt_output_begun(struct mt_output *output)
{
	if (output->temporary[0] && rename(output->temporary, output->target) < 0) {
		mt_say_error("%s cannot be replaced: %s; recording into %s", output->path,
			     strerror(errno), output->temporary);
		strcpy(output->path, output->temporary);
	}
	output->temporary[0] = '\0';
	if (output->old_fd >= 0)
		close(output->old_fd);
	output->old_fd = -1;
}

/* On some file systems the numbers of files change; one that was copied has another time. */
static bool is_same(const struct stat *a, const struct stat *b)
{
	return (a->st_ino == b->st_ino && a->st_dev == b->st_dev) ||
	       (a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
		a->st_mtim.tv_nsec == b->st_mtim.tv_nsec);
}

/* Where it may not be looked for nobody can tell, and it counts as there. */
static bool is_in_place(const struct mt_output *output, const struct stat *ours)
{
	struct stat named;

	if (stat(output->path, &named) == 0)
		return is_same(ours, &named);
	return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
}

const char *mt_output_trouble(const struct mt_output *output, bool disturbed)
{
	struct stat ours;

	if (fstat(output->fd, &ours) < 0 || !S_ISREG(ours.st_mode))
		return NULL;
	if (ours.st_nlink == 0)
		return "was removed or replaced while it was written: the recording is gone";
	if (!is_in_place(output, &ours))
		return "was renamed while it was written";
	return disturbed ? "was changed by others while it was written: it may be damaged" : NULL;
}

void mt_output_discard(struct mt_output *output)
{
	struct stat st;

	if (output->temporary[0])
		unlink(output->temporary);
	else if (output->made)
		unlink(output->path);
	else if (output->fd >= 0 && fstat(output->fd, &st) == 0 && S_ISREG(st.st_mode) &&
		 ftruncate(output->fd, 0) < 0)
		mt_say_error("%s cannot be emptied: %s", output->path, strerror(errno));
	if (output->fd >= 0)
		close(output->fd);
	if (output->old_fd >= 0)
		close(output->old_fd);
	output->fd = -1;
	output->old_fd = -1;
	output->made = false;
}
