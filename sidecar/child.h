/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The command: a child that waits until all is ready, then becomes what the user asked for, with
 * everything as the caller of the launcher had it.
 *
 * Threads: fork before others are started; the rest by one thread.
 */
#ifndef MT_SIDECAR_CHILD_H
#define MT_SIDECAR_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "sidecar/identity.h"
#include "sidecar/inherited.h"

struct mt_child {
	pid_t pid;
	int gate;   /* our end: a byte lets it go, its end or an errno comes back */
	bool ended; /* and reaped: status is set */
	int status; /* as of wait(2) */
};

/*
 * Forks; the child waits at the gate. All other descriptors above 2 are closed on our side, and 0
 * and 1 lead to /dev/null: a reader of the program's output must see its end when the program ends.
 * Returns 0 or a negative errno.
 */
int mt_child_fork(char **argv, char **env, const struct mt_identity *identity,
		  const struct mt_inherited *inherited, struct mt_child *ret_child);

/* Opens the gate. Returns 0 when the exec has been done, else the negative errno of what failed. */
int mt_child_run(struct mt_child *child);

/* Ends a child that is still at the gate. */
void mt_child_cancel(struct mt_child *child);

/* Closes all descriptors above 2 but one. */
void mt_close_all_but(int keep);

/* Moves a descriptor out of the program's usual range, close-on-exec; takes `fd` over. */
int mt_move_fd_high(int fd);

#endif
