/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whether threads of an image wait for chunks in vain: then they are told, and drop.
 *
 * Part of the order engine, and of its one thread.
 */
#ifndef MT_SIDECAR_STARVED_H
#define MT_SIDECAR_STARVED_H

#include <stdbool.h>
#include <stdint.h>

struct mt_image;
struct mt_order;

/* Once a round, before it is settled. `waiters`: how many threads wait now. */
bool mt_image_is_starved(struct mt_order *order, struct mt_image *image, uint32_t waiters);

#endif
