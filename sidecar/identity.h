/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Who the command runs as, and what privileges the sidecar keeps.
 *
 * Under sudo the command belongs to the user who called it: root is wanted for the kernel's events
 * alone. The command gets that user's ids, groups and HOME, USER, LOGNAME, SHELL; the sidecar takes
 * the same ids once its kernel sources are open.
 *
 * Threads: before others are started, since ids and capabilities are the thread's own.
 */
#ifndef MT_SIDECAR_IDENTITY_H
#define MT_SIDECAR_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MT_GROUPS_MAX 256

struct mt_identity {
	bool change; /* the command runs as another user than the sidecar was started as */
	uid_t uid;
	gid_t gid;
	gid_t groups[MT_GROUPS_MAX];
	int group_count;
	char name[64];
	char home[256];
	char shell[128];
};

/* Reads SUDO_UID and SUDO_GID. Returns 0, or -EINVAL when they cannot be used (said why). */
int mt_identity_find(bool as_root, struct mt_identity *ret_identity);

/* Takes the ids for good. Returns 0 or a negative errno. Async-signal-safe. */
int mt_identity_take(const struct mt_identity *identity);

/*
 * Gives up the capabilities of root: all, but for those that let a root sidecar signal and look at
 * the programs of its tree whatever their user (CAP_KILL, CAP_SYS_PTRACE), and write where root
 * could (CAP_DAC_OVERRIDE) when `keep_files`.
 */
void mt_identity_drop_capabilities(bool keep_files);

#endif
