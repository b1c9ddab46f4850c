/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Images from their registration to their end: what each may use of --max-buffers, and how many one
 * process may have that wait.
 *
 * Owner and threads: the merge thread.
 */
#ifndef MT_SIDECAR_IMAGE_H
#define MT_SIDECAR_IMAGE_H

#include "sidecar/order_impl.h"

#define MT_CHUNKS_FLOOR 16u /* what a segment is granted at least */

static inline size_t mt_image_binds_bytes(const struct mt_shm *shm)
{
	return shm->layout.proc_count * sizeof(struct mt_bind *);
}

/* Those that registered since. */
void mt_images_take_in(struct mt_order *order);

/* Sets how many chunks an image may use, within what the others leave over. */
void mt_image_grant(struct mt_order *order, struct mt_image *image, uint64_t chunks);

/* Takes back what images other than `needy` were granted and never used. */
void mt_image_reclaim_grants(struct mt_order *order, const struct mt_image *needy);

/* Out of the list already. */
void mt_image_free(struct mt_order *order, struct mt_image *image);

#endif
