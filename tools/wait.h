/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Waits for a recording that is still going on. */
#ifndef MT_TOOLS_WAIT_H
#define MT_TOOLS_WAIT_H

#include <stdbool.h>

#include "common/artifact_reader.h"

/*
 * Until the file is closed, or its recorder has ended without. `command` as for mt_input_open().
 * Returns 0 or an exit status, having said why.
 */
int mt_wait_closed(const char *command, const char *path);

/*
 * Whether a file that was read, and ended inside a frame, is being written: it is no longer as
 * large as it was, or becomes so while its recorder lives and we look (200 ms at most).
 */
bool mt_wait_grows(const struct mt_artifact_reader *reader, const char *path);

#endif
