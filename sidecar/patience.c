/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/patience.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"

#define NAP_MS 5

bool mt_patience(bool had)
{
	static _Thread_local uint64_t waited_ms, last_ms;
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000 };
	uint64_t now_ms;

	if (had) {
		waited_ms = 0;
		return false;
	}
	now_ms = mt_clock_monotonic_ns() / 1000000;
	if (now_ms - last_ms > MT_PATIENCE_AGAIN_MS)
		waited_ms = 0;
	if (waited_ms >= MT_PATIENCE_MS)
		return false;
	last_ms = now_ms;
	waited_ms += NAP_MS;
	nanosleep(&nap, NULL);
	return true;
}

void *mt_patient_malloc(size_t bytes)
{
	void *block;

	do {
		block = malloc(bytes);
	} while (mt_patience(block != NULL));
	return block;
}

void *mt_patient_calloc(size_t count, size_t bytes)
{
	void *block;

	do {
		block = calloc(count, bytes);
	} while (mt_patience(block != NULL));
	return block;
}

void *mt_patient_realloc(void *block, size_t bytes)
{
	void *moved;

	do {
		moved = realloc(block, bytes);
	} while (mt_patience(moved != NULL));
	return moved;
}

void *mt_patient_aligned(size_t alignment, size_t bytes)
{
	void *block;

	do {
		block = aligned_alloc(alignment, bytes);
	} while (mt_patience(block != NULL));
	return block;
}
