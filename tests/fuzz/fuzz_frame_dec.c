/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The content of a data frame, made of the fuzzer's bytes, through the decoder: what comes out lies
 * inside the input, and it stops before the end for a reason only.
 */
#include <errno.h>

#include "common/frame_dec.h"
#include "tests/fuzz/fuzz_input.h"

static int is_inside(const void *part, size_t len, const uint8_t *data, size_t size)
{
	uintptr_t from = (uintptr_t)part, base = (uintptr_t)data;

	return len == 0 || (from >= base && len <= size && from - base <= size - len);
}

/* Reads all that an event points to: a sanitizer sees what is out of bounds. */
static unsigned look_at(const struct mt_event *event, const uint8_t *data, size_t size)
{
	const struct mt_stack *stack;
	unsigned sum = 0;

	if (event->type == MT_EVENT_MAPPING) {
		fuzz_must(is_inside(event->mapping->path, event->mapping->path_len, data, size),
			  "a path lies in the content");
		for (uint32_t i = 0; i < event->mapping->path_len; i++)
			sum += (unsigned char)event->mapping->path[i];
	}
	if (event->type != MT_EVENT_STACK)
		return sum;
	stack = event->stack;
	fuzz_must(is_inside(stack->bytes, stack->bytes_len, data, size),
		  "a stack's bytes lie in the content");
	for (uint32_t i = 0; i < stack->bytes_len; i++)
		sum += stack->bytes[i];
	for (uint32_t i = 0; i < stack->regs_len; i++)
		sum += (unsigned)stack->regs[i];
	for (uint32_t i = 0; i < stack->fp_chain_len; i++)
		sum += (unsigned)stack->fp_chain[i];
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mt_frame_dec *dec;
	unsigned seen = 0;
	struct mt_decoded got;
	size_t at = 0;
	int ret;

	if (!dec)
		dec = mt_frame_dec_new();
	fuzz_must(dec != NULL, "there is memory");
	do {
		ret = mt_frame_dec_run(dec, data + at, size - at, &got);
		fuzz_must(got.consumed <= size - at, "no more is consumed than was given");
		fuzz_must(ret != -EBADMSG || got.why, "damage is said");
		for (size_t i = 0; i < got.n; i++)
			seen += look_at(&got.events[i], data, size);
		at += got.consumed;
	} while (ret == 0 && got.consumed > 0 && at < size);
	__asm__ volatile("" : : "r"(seen)); /* so that the reads stay */
	fuzz_must(ret != 0 || at == size, "it stops before the end for a reason only");
	return 0;
}
