/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lets go of descriptors without waiting for the kernel to take down what they stand for.
 *
 * Threads: the last one.
 */
#ifndef MT_SIDECAR_RELEASE_H
#define MT_SIDECAR_RELEASE_H

/*
 * To be called right before the process ends: what its descriptors above 2 stand for is released by
 * the kernel after that, in the background. Where it cannot be, the end of the process waits for it
 * as usual.
 */
void mt_release_later(void);

#endif
