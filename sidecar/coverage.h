/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which images of the tree were tracked, which were not and why, and who is still alive at the end.
 *
 * An image is what exec makes. The kernel tells of each exec; an image that loads our library says
 * hello, with the time at which it met us first. A hello belongs to the last exec of its process
 * before that time. An exec without one is an untracked image.
 *
 * Threads: any; a lock inside.
 */
#ifndef MT_SIDECAR_COVERAGE_H
#define MT_SIDECAR_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/control.h"
#include "sidecar/command.h"
#include "sidecar/kernel.h"

struct mt_coverage;

enum mt_untracked_reason {
	MT_UNTRACKED_UNKNOWN,
	MT_UNTRACKED_SECURE,
	MT_UNTRACKED_STATIC,
	MT_UNTRACKED_FOREIGN,
	MT_UNTRACKED_ENVIRONMENT,
	MT_UNTRACKED_LIBC,
	MT_UNTRACKED_SANITIZER,
	MT_UNTRACKED_ALLOCATOR, /* another malloc comes before ours: our hooks are never called */
	MT_UNTRACKED_REFUSED,	/* it said hello, and there was no room for it */
	MT_UNTRACKED_WAITED,	/* it said hello to a sidecar that stood still, and went on */
	MT_UNTRACKED_ELSEWHERE, /* it loaded our library, and said no hello to us */
	/* Of images that are recorded but for what such libraries allocate. */
	MT_UNTRACKED_DEEPBIND, /* opened with RTLD_DEEPBIND */
	MT_UNTRACKED_DLMOPEN,  /* opened by dlmopen into another namespace */
	/* Of images that had no time to load our library. No heap event of theirs is missing. */
	MT_UNTRACKED_ENDED,    /* killed before */
	MT_UNTRACKED_STARTING, /* the recording ended before */
	MT_UNTRACKED_REASONS
};

struct mt_untracked {
	pid_t pid;
	uint64_t time_ns; /* of the exec */
	enum mt_untracked_reason reason;
	char *path;
};

struct mt_coverage_totals {
	bool known; /* false without kernel events: then only `tracked` is counted */
	uint64_t tracked;
	uint64_t untracked;  /* without those that had no time to load our library */
	uint64_t not_loaded; /* those */
	uint64_t by_reason[MT_UNTRACKED_REASONS];
};

/* `known`: the kernel tells of execs. NULL when out of memory. */
struct mt_coverage *mt_coverage_new(bool known);
void mt_coverage_free(struct mt_coverage *coverage);

/* A process that is there before the kernel's events begin. */
void mt_coverage_add_process(struct mt_coverage *coverage, pid_t pid);

/* The same, and its image runs already: no exec of that is told. `path`: may be NULL. */
void mt_coverage_add_image(struct mt_coverage *coverage, pid_t pid, const char *path);

/* Has the kernel told of a process that has this number now? */
bool mt_coverage_is_seen(struct mt_coverage *coverage, pid_t pid);

void mt_coverage_kernel_event(struct mt_coverage *coverage, const struct mt_kev *event);

/* An image said hello at `time_ns` and is tracked. */
void mt_coverage_hello(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns);

/* An image said hello and is not: there was no room for it, or it has an allocator of its own. */
void mt_coverage_hello_in_vain(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns,
			       enum mt_untracked_reason reason);

/* The image whose hello at `time_ns` was counted is not tracked after all. */
void mt_coverage_hello_undone(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns,
			      enum mt_untracked_reason reason);

/*
 * An image that counts as tracked turned out to be so in part: it is listed, and counted with the
 * untracked ones instead. `path`: may be NULL. Its process may be over, or run another image.
 */
void mt_coverage_in_part(struct mt_coverage *coverage, pid_t pid, const char *path,
			 enum mt_untracked_reason reason);

/* The image of `pid` is untracked for a reason that the kernel does not see. */
void mt_coverage_explain(struct mt_coverage *coverage, pid_t pid, const char *path,
			 enum mt_untracked_reason reason);

/* How many processes of the tree are alive, as far as the kernel told. */
size_t mt_coverage_alive(struct mt_coverage *coverage);

/* The end, at `now_ns`: what has not said hello by now is untracked. */
void mt_coverage_finish(struct mt_coverage *coverage, uint64_t now_ns);

void mt_coverage_totals(struct mt_coverage *coverage, struct mt_coverage_totals *ret_totals);

/* Is it one that had no time to load our library? */
bool mt_untracked_is_not_loaded(enum mt_untracked_reason reason);

/* Is it recorded in part? */
bool mt_untracked_is_in_part(enum mt_untracked_reason reason);

/*
 * After finish: the untracked images, those that had no time among them, oldest first (at most
 * 1,000 are listed, all are counted).
 */
size_t mt_coverage_untracked(const struct mt_coverage *coverage,
			     const struct mt_untracked **ret_list);

/* Writes at most `max` numbers of processes that are alive; returns how many are. */
size_t mt_coverage_alive_list(struct mt_coverage *coverage, pid_t *pids, size_t max);

/* What the kernel saw at the exec: `flags` as in struct mt_kev. */
enum mt_untracked_reason mt_untracked_reason_of_exec(uint32_t flags);

/* What makes a file one that cannot be tracked; unknown when nothing does. */
enum mt_untracked_reason mt_untracked_reason_of(enum mt_command_kind kind);

/* "static", "environment", ...: as the artifact's metadata name it. */
const char *mt_untracked_reason_name(enum mt_untracked_reason reason);

/* The same for people. */
const char *mt_untracked_reason_text(enum mt_untracked_reason reason);

#endif
