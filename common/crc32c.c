/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "common/crc32c.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__) && !defined(MT_NO_CPU_DISPATCH)
#define HAVE_INSTRUCTION 1
#elif defined(__aarch64__) && !defined(MT_NO_CPU_DISPATCH)
#include <sys/auxv.h>
#define HAVE_INSTRUCTION 1
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#else
#define HAVE_INSTRUCTION 0
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78)

/* tables[n][byte]: what the byte leaves behind n more bytes. */
static uint32_t tables[4][256];
#if HAVE_INSTRUCTION
static bool by_instruction;
#endif

static uint32_t times_x(uint32_t value)
{
	return value >> 1 ^ (POLYNOMIAL & (0u - (value & 1)));
}

/* Before main(), so that nobody has to ask whether they are there. */
__attribute__((constructor)) static void prepare(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t value = byte;

		for (int bit = 0; bit < 8; bit++)
			value = times_x(value);
		tables[0][byte] = value;
	}
	for (int n = 1; n < 4; n++)
		for (uint32_t byte = 0; byte < 256; byte++)
			tables[n][byte] =
				tables[n - 1][byte] >> 8 ^ tables[0][tables[n - 1][byte] & 0xff];
#if HAVE_INSTRUCTION && defined(__x86_64__)
	__builtin_cpu_init();
	by_instruction = __builtin_cpu_supports("sse4.2");
#elif HAVE_INSTRUCTION
	by_instruction = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
}

/* The inner value, not inverted, goes through the next two. */
static uint32_t run_tables(uint32_t crc, const uint8_t *p, size_t len)
{
	for (; len >= 4; p += 4, len -= 4) {
		crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		       (uint32_t)p[3] << 24;
		crc = tables[3][crc & 0xff] ^ tables[2][crc >> 8 & 0xff] ^
		      tables[1][crc >> 16 & 0xff] ^ tables[0][crc >> 24];
	}
	while (len--)
		crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xff];
	return crc;
}

#if HAVE_INSTRUCTION
/*
 * An instruction takes three cycles and one can begin in each: three stretches are summed side by
 * side, and put together. What a stretch leaves behind LANE more bytes is its value times x to the
 * power of 8 * LANE.
 */
#define LANE	    8192u
#define BEHIND_LANE UINT32_C(0x28461564)

static inline uint64_t add_word(uint64_t crc, const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
#if defined(__x86_64__)
	__asm__("crc32q %1, %0" : "+r"(crc) : "rm"(word));
#else
	__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %1" : "+r"(crc) : "r"(word));
#endif
	return crc;
}

/* The product of two polynomials, the highest bit of each being that of x to the power of 0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1, b = times_x(b))
		product ^= b & (0u - (a >> 31));
	return product;
}

static uint32_t run_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t sum = crc;

	for (; len >= 3 * LANE; p += 3 * LANE, len -= 3 * LANE) {
		uint64_t second = 0, third = 0;

		for (size_t i = 0; i < LANE; i += 8) {
			sum = add_word(sum, p + i);
			second = add_word(second, p + LANE + i);
			third = add_word(third, p + 2 * LANE + i);
		}
		second ^= multiply((uint32_t)sum, BEHIND_LANE);
		sum = third ^ multiply((uint32_t)second, BEHIND_LANE);
	}
	for (; len >= 8; p += 8, len -= 8)
		sum = add_word(sum, p);
	return run_tables((uint32_t)sum, p, len);
}
#endif

uint32_t mt_crc32c(uint32_t before, const void *data, size_t len)
{
#if HAVE_INSTRUCTION
	if (by_instruction)
		return ~run_instruction(~before, data, len);
#endif
	return mt_crc32c_by_tables(before, data, len);
}

uint32_t mt_crc32c_by_tables(uint32_t before, const void *data, size_t len)
{
	return ~run_tables(~before, data, len);
}
