/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A session as a test or a benchmark needs it to have the preloaded library talk to it: the socket
 * and the first message of control.h. One session a process, one thread.
 */
#ifndef MT_TESTS_E2E_SHIM_SESSION_H
#define MT_TESTS_E2E_SHIM_SESSION_H

#include <stddef.h>

#include "common/control.h"
#include "common/shm.h"

/* Opens the socket. Fills `value` with MEMTRACK_SESSION's. Returns the socket or -1. */
int mt_test_session_open(char *value, size_t value_bytes);

/*
 * Takes one connection's hello and answers it with a new segment. Returns 0 with both filled, or
 * -1: refused. The segment is the caller's.
 */
int mt_test_session_welcome(int listener, const struct mt_shm_options *options,
			    struct mt_hello *ret_hello, struct mt_shm *ret_shm);

#endif
