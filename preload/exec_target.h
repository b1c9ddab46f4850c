/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads from a file what it will be once it is executed, by raw system calls and on the caller's
 * stack alone: it runs in vfork children.
 */
#ifndef MT_PRELOAD_EXEC_TARGET_H
#define MT_PRELOAD_EXEC_TARGET_H

#include "preload/follow.h"

/* What cannot be read is taken for ordinary: whether it can be run is not for us to say. */
enum mt_target mt_exec_target_at(int directory, const char *path);
enum mt_target mt_exec_target_fd(int fd);

/* The same for what execvp would find: by PATH unless the name has a slash. */
enum mt_target mt_exec_target_search(const char *name);

#endif
