/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The session as the environment names it (control.h), kept in memory of our own, since the
 * program may change its environment.
 */
#ifndef MT_PRELOAD_SESSION_H
#define MT_PRELOAD_SESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/control.h"

#define MT_SESSION_NAME_DIGITS 32
#define MT_SESSION_VALUE_BYTES (PATH_MAX + 128)

struct mt_session {
	char entry[sizeof(MT_ENV_SESSION "=") +
		   MT_SESSION_VALUE_BYTES]; /* "MEMTRACK_SESSION=..." */
	char name[MT_SESSION_NAME_DIGITS + 1];
	uint8_t token[MT_TOKEN_BYTES];
	const char *directory; /* in entry; may be empty */
};

/* Takes a value apart. Returns false when it is not of the form in control.h. */
bool mt_session_parse(const char *value, struct mt_session *ret_session);

/*
 * Connects and says hello. Returns the memfd, or a negative errno; -ENOTCONN: the session ended,
 * -EAGAIN: no answer came, and it is not worth while to wait on (pulse.h); -EPROTO: refused, or no
 * answer of ours.
 */
int mt_session_hello(const struct mt_session *session, const struct mt_hello *hello,
		     uint64_t *ret_total_bytes);

/* Moves a descriptor out of the program's way. Returns the one to use; the old one is closed. */
int mt_fd_raise(int fd);

#endif
