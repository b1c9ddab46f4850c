/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The two hot loops of the fused writer exist once in C and, on x86-64, twice
 * in machine code: plain, and with the bit instructions of newer processors
 * (leading zeroes counted in one step, shifts by any register). Both give the
 * same bytes. Which one is used is decided at run time.
 */
#ifndef MT_COMMON_FUSED_CPU_H
#define MT_COMMON_FUSED_CPU_H

#include <stdbool.h>

#if defined(__x86_64__) && !defined(MT_NO_CPU_DISPATCH)
#include <cpuid.h>
#define MT_FUSED_HAVE_BITS 1
#define MT_FUSED_BITS_CODE __attribute__((target("lzcnt,bmi,bmi2")))
#else
#define MT_FUSED_HAVE_BITS 0
#endif

/* A loop written once, to be compiled into each function that calls it. */
#define MT_FUSED_LOOP static inline __attribute__((always_inline))

static inline bool mt_fused_cpu_has_bits(void)
{
#if MT_FUSED_HAVE_BITS
	/* clang 14 does not know "lzcnt" as a name here: the bit is read by hand. */
	unsigned int eax, ebx, ecx = 0, edx;

	return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT) &&
	       __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
	return false;
#endif
}

#endif
