/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Meets the sidecar: once an image, at its first hook or in our constructor, whichever comes first.
 * Allocates nothing, and leaves no descriptor, no thread and no child behind. What cannot be had
 * leaves the image untracked.
 */
#ifndef MT_PRELOAD_ATTACH_H
#define MT_PRELOAD_ATTACH_H

/*
 * Returns when it is decided whether this image records; at once after the first time. A second
 * thread waits for the first, within a bound. The caller must hold no lock; errno stays.
 */
void mt_attach(void);

#ifdef MT_HARNESS
/* The segment that the test program, which is both ends, has mapped already. */
extern void *mt_harness_segment;
#endif

#endif
