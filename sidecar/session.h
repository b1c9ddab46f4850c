/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A session as the programs of the tree see it: its name and token, its private directory, and the
 * environment that leads there (common/control.h says what MEMTRACK_SESSION holds).
 *
 * Threads: one at a time.
 */
#ifndef MT_SIDECAR_SESSION_H
#define MT_SIDECAR_SESSION_H

#include <limits.h>
#include <stdint.h>

#include "common/control.h"
#include "sidecar/identity.h"

#define MT_LIBRARY_NAME "libmemtrack-preload.so"

struct mt_session {
	char name[2 * MT_TOKEN_BYTES + 1];
	uint8_t token[MT_TOKEN_BYTES];
	char directory[64];	/* empty: none could be made */
	char value[256];	/* of MEMTRACK_SESSION */
	char library[PATH_MAX]; /* what LD_PRELOAD names; empty in manual use */
	uid_t owner;
};

/*
 * Makes name, token, and the directory (owned by the identity's user). Returns 0 or a negative
 * errno; a directory that cannot be made is no error.
 */
int mt_session_open(const struct mt_identity *identity, struct mt_session *ret_session);

/*
 * Chooses how LD_PRELOAD names the library: by its own path, or, when that holds a character that
 * LD_PRELOAD cannot express (space, colon, $), by a symbolic link in the session's directory.
 * Returns 0 or a negative errno, having said why.
 */
int mt_session_set_library(struct mt_session *session, const char *library);

/* The LD_PRELOAD that is meant for the command, without us; NULL: none. */
const char *mt_session_their_preload(void);

/*
 * The environment of the command: ours without what is for the sidecar alone, with the session,
 * and with the library first in LD_PRELOAD unless `preload` is false. NULL when out of memory.
 * Lives until the end of the process.
 */
char **mt_session_environment(const struct mt_session *session, const struct mt_identity *identity,
			      bool preload);

/* Removes the directory and what is in it. */
void mt_session_close(struct mt_session *session);

/* Removes what sessions that were killed left behind in the same place. */
void mt_session_clean_leftovers(const struct mt_session *session);

#endif
