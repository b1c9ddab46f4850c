/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CRC-32 as in Ethernet, gzip and Python's zlib.crc32: reflected, polynomial
 * 0xEDB88320, start and final value inverted. It guards what is ours alone in
 * the artifact (skippable frames) against accidents, not against intent.
 *
 * Thread rule: a pure function.
 */
#ifndef MT_COMMON_CRC32_H
#define MT_COMMON_CRC32_H

#include <stddef.h>
#include <stdint.h>

uint32_t mt_crc32(const void *data, size_t len);

#endif
