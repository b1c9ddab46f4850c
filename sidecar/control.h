/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The socket where images introduce themselves (common/control.h has the messages). Nothing here
 * waits for a client: who connects and says nothing, or nonsense, or never reads, costs one entry
 * of a table with a limit and a time limit.
 *
 * Threads: one.
 */
#ifndef MT_SIDECAR_CONTROL_H
#define MT_SIDECAR_CONTROL_H

#include <stdint.h>
#include <sys/types.h>

#include "common/control.h"
#include "sidecar/session.h"

struct mt_control;

/*
 * A hello with the right token; MT_HELLO_LEFT is set in its flags when nobody waits for the answer.
 * Returns enum mt_welcome_status; with MT_WELCOME_OK, *ret_fd is a
 * descriptor to hand over (it is closed after that) and *ret_total_bytes its size.
 */
typedef uint32_t mt_control_hello_fn(void *context, pid_t pid, const struct mt_hello *hello,
				     int *ret_fd, uint64_t *ret_total_bytes);

/*
 * May another hello be answered? While not, nobody is let in; who is waits in the queue of the
 * socket, which the kernel limits.
 */
typedef bool mt_control_room_fn(void *context);

struct mt_control_counts {
	uint64_t welcomed;
	uint64_t refused; /* wrong token, version or user */
	uint64_t full;	  /* no memory or descriptor was left for the image */
	uint64_t unheard; /* nor to hear who it is; its program runs untracked */
};

/* Listens under the session's name, and in its directory if it has one. 0 or a negative errno. */
/* `has_room` may be NULL: always. */
int mt_control_open(const struct mt_session *session, mt_control_hello_fn *on_hello,
		    mt_control_room_fn *has_room, void *context, struct mt_control **ret_control);

/* Polls readable when mt_control_serve() has something to do. */
int mt_control_fd(const struct mt_control *control);

/* How long a caller may wait before it calls serve again: -1 or milliseconds. */
int mt_control_timeout_ms(const struct mt_control *control);

/* Serves what is ready, drops who took too long. Does not wait. */
void mt_control_serve(struct mt_control *control);

void mt_control_counts(const struct mt_control *control, struct mt_control_counts *ret_counts);

/* NULL is accepted. */
void mt_control_close(struct mt_control *control);

#endif
