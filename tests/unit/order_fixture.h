/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The fixture of the order engine's tests: one bench, one image of a program, two threads of it. */
#ifndef MT_TESTS_UNIT_ORDER_FIXTURE_H
#define MT_TESTS_UNIT_ORDER_FIXTURE_H

#include "tests/unit/order_support.h"

#define PID BENCH_PID

extern struct bench bench;
extern struct bench_image image;
extern struct mt_writer one, two; /* the threads PID and PID + 1, once the image is there */

/* For TestSuite(): a bench without kernel events, and the image; or one with them, and no image. */
void open_image(void);
void open_kernel(void);
void close_bench(void);

/* The image of PID says hello, and its threads claim their streams. */
void add_image(void);

/* Appends a record of 8 bytes with the stamp base + at. */
void put(struct mt_writer *writer, uint64_t at, enum mt_rec_kind kind, uint64_t addr);

/* A kernel event of the time base + at; kernel() has the next drain give it out. */
struct mt_kev kernel_event(enum mt_kev_type type, int32_t pid, int32_t parent_pid, uint64_t at);
void kernel(enum mt_kev_type type, int32_t pid, int32_t parent_pid, uint64_t at);

#endif
