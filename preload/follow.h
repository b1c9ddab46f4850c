/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What an environment needs so that a new image finds us: our entry in LD_PRELOAD, and the session.
 *
 * The functions are called in vfork children, which share their parent's memory: they read what
 * attach left, and write to the caller's stack alone. errno stays.
 */
#ifndef MT_PRELOAD_FOLLOW_H
#define MT_PRELOAD_FOLLOW_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* How many pointers, and how much text, a new environment may take on the stack. */
#define MT_FOLLOW_POINTERS_MAX 8192
#define MT_FOLLOW_TEXT_MAX     32768

struct mt_follow {
	bool on;
	char path[PATH_MAX]; /* of our library, absolute */
	const char *session; /* "MEMTRACK_SESSION=..." */
};

extern struct mt_follow mt_follow;

/* Notes where our library is: as ld.so loaded it, made absolute. Called once, by attach. */
void mt_follow_set_path(const char *path);

/* True when the environment's LD_PRELOAD has us. */
bool mt_follow_names_us(char *const *environment);

/*
 * False when a new image would not find our library: behind a chroot, or under another user. Its
 * loader would complain on the program's standard error.
 */
bool mt_follow_is_reachable(void);

/* What an image is to us. */
enum mt_target {
	MT_TARGET_ORDINARY, /* or unknown: it gets us */
	MT_TARGET_STATIC,   /* never reads LD_PRELOAD; its children may: left as it is */
	MT_TARGET_UNFIT, /* foreign, privileged, sanitized, out of our reach: starts without us */
};

/* What is to be done to an environment. */
struct mt_follow_plan {
	char *const *given;  /* may be NULL */
	const char *preload; /* the given LD_PRELOAD's value, or NULL */
	size_t pointers;     /* room that the new array needs; 0: pass the given one on */
	size_t text_bytes;   /* room for the new LD_PRELOAD entry */
	bool add;	     /* else take us out */
	bool least;	     /* and the session too: set by the caller, for want of room */
};

struct mt_follow_plan mt_follow_plan(char *const *given, enum mt_target target);

/* Fills `pointers` and `text`, which have the room that the plan says. */
void mt_follow_build(const struct mt_follow_plan *plan, char **pointers, char *text);

#endif
