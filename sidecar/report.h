/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The end of a run as the user sees it: warnings with a bounded number of lines, and one summary.
 *
 * Threads: the main one.
 */
#ifndef MT_SIDECAR_REPORT_H
#define MT_SIDECAR_REPORT_H

#include <stdbool.h>

#include "sidecar/run.h"

/* Says it, on standard error. */
void mt_report(struct mt_run *run);

/* True when all was recorded and written, and the kernel can vouch that no image is missing. */
bool mt_report_is_complete(struct mt_run *run);

#endif
