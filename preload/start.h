/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Manual use: LD_PRELOAD names us, and there is no session. The root image starts a sidecar, which
 * is no child of the program: an intermediate process, cloned without an exit signal and waited
 * for, leaves it to init.
 */
#ifndef MT_PRELOAD_START_H
#define MT_PRELOAD_START_H

#include <stddef.h>

/*
 * Fills `value` with the session that the sidecar made. Returns 0 or a negative errno, after saying
 * why on stderr. Nothing is left behind but the sidecar.
 */
int mt_start_sidecar(char *const *environment, char *value, size_t value_bytes);

/* One line on stderr: why the program runs untracked. */
void mt_start_complain(const char *reason);

#endif
