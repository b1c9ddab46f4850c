/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tools/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_TRIED 1000

static const char exists[] = "exists; use --force to replace it";

/* The name until it is whole, empty when there is none: a signal's handler has to find it. */
static char temporary[PATH_MAX];

static void remove_temporary(void)
{
	/* The handler may do it a second time: then nothing is there. */
	if (temporary[0])
		(void)unlink(temporary);
	temporary[0] = 0;
}

static void on_end(int sig)
{
	if (temporary[0])
		(void)unlink(temporary);
	/* Its first call took the handler back: this one ends the process. */
	raise(sig);
}

/* A limit on file sizes is an error of write() then, and signals that end us clean up. */
static void watch_signals(void)
{
	static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM };
	const struct sigaction removes = { .sa_handler = on_end, .sa_flags = SA_RESETHAND };
	struct sigaction old;

	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		/* What the caller had us ignore (nohup) stays so. */
		if (!sigaction(ends[i], NULL, &old) && old.sa_handler == SIG_DFL)
			(void)sigaction(ends[i], &removes, NULL); /* else the file is left */
}

/* Opens it; a signal comes before, and nothing is there, or behind, and its handler knows. */
static int open_temporary(const char *name, mode_t mode)
{
	sigset_t all, old;
	int fd, err;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	err = errno;
	if (fd >= 0)
		strcpy(temporary, name);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return fd < 0 ? -err : fd;
}

/* Makes the file beside the one at `path`, with a mode as for open(). */
static int make_temporary(struct mt_new_file *file, mode_t mode)
{
	const char *slash = strrchr(file->path, '/');
	int folder = slash ? (int)(slash - file->path) + 1 : 0;
	char name[PATH_MAX];

	for (int i = 0; i < NAMES_TRIED; i++) {
		if (snprintf(name, sizeof(name), "%.*s.memtrack-%d-%d.tmp", folder, file->path,
			     (int)getpid(), i) >= (int)sizeof(name))
			return -ENAMETOOLONG;
		file->fd = open_temporary(name, mode);
		if (file->fd >= 0)
			return 0;
		if (file->fd != -EEXIST)
			return file->fd;
	}
	return -EEXIST;
}

static int create(struct mt_new_file *file, const char *name, bool force)
{
	size_t len = strlen(name);

	if (!len || name[len - 1] == '/')
		return len ? -EISDIR : -ENOENT;
	if (len >= sizeof(file->path))
		return -ENAMETOOLONG;
	memcpy(file->path, name, len + 1);
	file->may_replace = force;
	return make_temporary(file, 0666);
}

/* Whether it may be replaced: by its mode, and as far as others use it. */
static int check_writable(const char *path, const char **ret_why)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK) {
		*ret_why = "is being written by memtrack-preload; name another file";
		close(fd);
		return -EBUSY;
	}
	close(fd);
	return 0;
}

static int replace(struct mt_new_file *file, const char *name, const struct stat *old, bool force,
		   const char **ret_why)
{
	int ret;

	if (!force) {
		*ret_why = exists;
		return -EEXIST;
	}
	if (!realpath(name, file->path))
		return -errno;
	ret = check_writable(file->path, ret_why);
	if (ret)
		return ret;
	file->may_replace = true;
	file->replaces = true;
	ret = make_temporary(file, 0600);
	if (ret) {
		if (ret == -EACCES || ret == -EPERM || ret == -EROFS)
			*ret_why = "the folder it is in may not be written: name another file";
		return ret;
	}
	/* Who may not give it away owns it then. */
	if ((old->st_uid != geteuid() || old->st_gid != getegid()) &&
	    fchown(file->fd, old->st_uid, old->st_gid))
		errno = 0;
	if (fchmod(file->fd, old->st_mode & 0777)) {
		ret = -errno;
		mt_new_file_drop(file);
	}
	return ret;
}

static int write_to_stdout(struct mt_new_file *file)
{
	file->is_stdout = true;
	file->fd = dup(STDOUT_FILENO);
	return file->fd < 0 ? -errno : 0;
}

static bool is_stdout(const struct stat *named)
{
	struct stat out;

	return !fstat(STDOUT_FILENO, &out) && out.st_dev == named->st_dev &&
	       out.st_ino == named->st_ino && !S_ISCHR(out.st_mode);
}

int mt_new_file_open(struct mt_new_file *file, const char *name, bool force, const char **ret_why)
{
	struct stat st;

	*file = (struct mt_new_file){ .fd = -1 };
	*ret_why = NULL;
	watch_signals();
	if (!strcmp(name, "-"))
		return write_to_stdout(file);
	if (stat(name, &st)) {
		int err = errno;

		if (err != ENOENT)
			return -err;
		if (!lstat(name, &st)) {
			*ret_why = "is a link that leads nowhere; remove it, or name another file";
			return -EEXIST;
		}
		return create(file, name, force);
	}
	if (is_stdout(&st))
		return write_to_stdout(file);
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISREG(st.st_mode))
		return replace(file, name, &st, force, ret_why);
	file->fd = open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return file->fd < 0 ? -errno : 0;
}

/* Not over what has come to its name meanwhile, unless it may. */
static int name_it(const struct mt_new_file *file)
{
	if (!renameat2(AT_FDCWD, temporary, AT_FDCWD, file->path,
		       file->may_replace ? 0 : RENAME_NOREPLACE))
		return 0;
	if (file->may_replace || (errno != EINVAL && errno != ENOSYS))
		return -errno;
	/* A file system that cannot do the one can do the other. */
	return link(temporary, file->path) ? -errno : 0;
}

int mt_new_file_keep(struct mt_new_file *file, const char **ret_why)
{
	int ret = 0;

	*ret_why = NULL;
	/* What was there is to be gone only when this will be found after a crash too. */
	if (file->replaces && fsync(file->fd) && errno != EINVAL)
		ret = -errno;
	if (close(file->fd) && !ret)
		ret = -errno;
	file->fd = -1;
	if (file->path[0] && !ret) {
		ret = name_it(file);
		if (ret == -EEXIST)
			*ret_why = exists;
		else if (ret)
			*ret_why = file->replaces ? "cannot be replaced; name another file" : NULL;
	}
	remove_temporary();
	return ret;
}

void mt_new_file_drop(struct mt_new_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	remove_temporary();
}
