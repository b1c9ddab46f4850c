/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Looks at a program's file before it is started: can the preloaded library work in it?
 *
 * Threads: any; no state.
 */
#ifndef MT_SIDECAR_COMMAND_H
#define MT_SIDECAR_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum mt_command_kind {
	MT_COMMAND_TRACKABLE,
	MT_COMMAND_UNKNOWN, /* not readable, or not a form we know: it is tried */
	MT_COMMAND_STATIC,  /* no program interpreter: nobody loads us */
	MT_COMMAND_LIBC,    /* another C library than ours, such as musl */
	MT_COMMAND_FOREIGN, /* another class or machine */
	MT_COMMAND_SET_ID,  /* set-user-ID, set-group-ID or file capabilities: the loader refuses us
			     */
	MT_COMMAND_SANITIZER, /* its runtime insists on being first and owns malloc */
};

struct mt_command {
	enum mt_command_kind kind;
	char path[PATH_MAX];   /* what was looked at: for a script its interpreter */
	char detail[PATH_MAX]; /* the interpreter, or the library that stands in the way */
};

/*
 * Finds `name` as execvp does and looks at it; a script's interpreter is looked at in its place.
 * `uid` and `gid` are who will run it: a set-ID bit matters only when it changes something.
 */
void mt_command_check(const char *name, uid_t uid, gid_t gid, struct mt_command *ret_command);

/* "is statically linked", ...: NULL when it can be tracked. */
const char *mt_command_reason(enum mt_command_kind kind);

/* True when LD_PRELOAD must stay out of its environment, since it would stop the program or make
 * its loader print errors. (A static program just passes it on to those that it starts.) */
bool mt_command_refuses_preload(enum mt_command_kind kind);

#endif
