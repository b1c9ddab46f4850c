/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory for what the recording cannot do without. Where there is none now there may be some soon:
 * a frame is written, a process ends. So these wait for it, each thread for MT_PATIENCE_MS in all
 * until memory is had again or MT_PATIENCE_AGAIN_MS have passed, and give NULL only then; the
 * caller counts what is lost by that.
 *
 * Threads: any of the sidecar that may sleep for so long. The programs wait as they do for a slow
 * disk.
 */
#ifndef MT_SIDECAR_PATIENCE_H
#define MT_SIDECAR_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>

#define MT_PATIENCE_MS	     2000
#define MT_PATIENCE_AGAIN_MS 20000

void *mt_patient_malloc(size_t bytes);
void *mt_patient_calloc(size_t count, size_t bytes);
void *mt_patient_realloc(void *block, size_t bytes);
void *mt_patient_aligned(size_t alignment, size_t bytes);

/*
 * For who finds out in another way that there is no memory: true when it is worth another try,
 * after a nap. With `had` it only says that memory was had, and patience begins anew: to be said
 * of memory that was new, not where none was needed.
 */
bool mt_patience(bool had);

#endif
