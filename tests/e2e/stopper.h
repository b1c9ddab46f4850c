/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stops a thread again and again, as the scheduler does but more often: between any two
 * instructions, also inside a hook or the allocator, for longer than memtrack parks a record.
 *
 * Threads: init once, before the others; start and end by the thread itself.
 */
#ifndef MT_TESTS_E2E_STOPPER_H
#define MT_TESTS_E2E_STOPPER_H

#include <stdint.h>
#include <time.h>

void stopper_init(void);
timer_t stopper_start(int32_t tid, unsigned every_us);
void stopper_end(timer_t timer);

#endif
