/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CRC-32C (Castagnoli): reflected, polynomial 0x82F63B78, start and final value inverted. x86-64
 * with SSE 4.2 and aarch64 with the CRC instructions have it in hardware, 8 bytes a cycle; others
 * take tables. It guards frames of events against accidents, not against intent.
 *
 * Thread rule: pure functions.
 */
#ifndef MT_COMMON_CRC32C_H
#define MT_COMMON_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of data that comes in pieces: the value of what was before them, at first 0. */
uint32_t mt_crc32c(uint32_t before, const void *data, size_t len);

/* The same by tables, whatever the processor has: for tests. */
uint32_t mt_crc32c_by_tables(uint32_t before, const void *data, size_t len);

#endif
