/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Streams of events to try the fused writer with, for its tests and its
 * benchmark. All are deterministic.
 */
#ifndef MT_TESTS_UNIT_FUSED_SUPPORT_H
#define MT_TESTS_UNIT_FUSED_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"
#include "common/frame_enc.h"
#include "common/frame_fused.h"

/* Random numbers; the state may be anything but 0. */
uint64_t fused_rnd(uint64_t *state);

/*
 * A heap in use: 4 threads, 48 % Malloc, 42 % Free, 10 % Realloc, sizes and
 * addresses as an allocator with size classes gives them. With sites > 0
 * every allocation has one of that many stack hashes, which goes with its
 * size; with random_addrs addresses are random in 47 bits.
 */
struct heap_trace;
struct heap_trace *heap_trace_new(unsigned int sites, bool random_addrs, uint64_t seed);
void heap_trace_free(struct heap_trace *trace);
void heap_trace_fill(struct heap_trace *trace, struct mt_event *events, size_t n);

/* Every field random over its whole range, heap types only. */
void random_fill(uint64_t *state, struct mt_event *events, size_t n);

/*
 * Frames of all kinds of streams: few or many threads and types, fields of any
 * width, which repeat, stay, grow or jump; periodic ones; paths that are long,
 * alike or no UTF-8; flags and members where they do not belong. Stack only
 * where asked for. What events point to is the store's, until the next fill.
 */
struct hostile_store;
struct hostile_store *hostile_store_new(uint64_t seed);
void hostile_store_free(struct hostile_store *store);
void hostile_fill(struct hostile_store *store, struct mt_event *events, size_t n, bool stacks);

/*
 * Writes the frame by every way there is in this machine, decompresses it, and
 * compares with the serializer. NULL, or what is wrong.
 */
struct fused_checker;
struct fused_checker *fused_checker_new(void);
void fused_checker_free(struct fused_checker *checker);
const char *fused_check(struct fused_checker *checker, const struct mt_event *events, size_t n);
/* Whether the writer was built, and runs, with code for newer processors. */
bool fused_checker_chooses(struct fused_checker *checker);
const struct mt_frame_fused_stats *fused_checker_stats(const struct fused_checker *checker);

#endif
