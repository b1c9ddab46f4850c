/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Waits for a recording that is still going on. */
#ifndef MT_TOOLS_WAIT_H
#define MT_TOOLS_WAIT_H

/*
 * Until the file is closed, or its recorder has ended without. `command` as for mt_input_open().
 * Returns 0 or an exit status, having said why.
 */
int mt_wait_closed(const char *command, const char *path);

#endif
