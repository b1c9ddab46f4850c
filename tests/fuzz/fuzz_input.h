/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the fuzz targets share: the entry that libFuzzer and the corpus runner call, and the input
 * as a stream of small numbers. An input that has ended gives zeros.
 */
#ifndef MT_TESTS_FUZZ_FUZZ_INPUT_H
#define MT_TESTS_FUZZ_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer's own name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
	const uint8_t *p;
	size_t left;
};

static inline uint64_t fuzz_take(struct fuzz_input *in, size_t bytes)
{
	uint64_t value = 0;

	if (bytes > in->left)
		bytes = in->left;
	if (bytes)
		memcpy(&value, in->p, bytes);
	in->p += bytes;
	in->left -= bytes;
	return value;
}

/* A run of at most `max` bytes, its length given by the input. */
static inline const uint8_t *fuzz_take_run(struct fuzz_input *in, size_t max, size_t *ret_len)
{
	const uint8_t *at;
	size_t len = (size_t)fuzz_take(in, 2);

	if (len > max)
		len = max;
	if (len > in->left)
		len = in->left;
	at = in->p;
	in->p += len;
	in->left -= len;
	*ret_len = len;
	return at;
}

/* What the target promises does not hold: the input is a finding. */
static inline void fuzz_must(int held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "fuzz target: does not hold: %s\n", what);
	abort();
}

#endif
