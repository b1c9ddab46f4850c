/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * System calls without libc: they touch neither errno nor any lock, are no cancellation points and
 * work in a child of a threaded process. A result from -4095 to -1 is a negative errno.
 */
#ifndef MT_COMMON_RAW_SYSCALL_H
#define MT_COMMON_RAW_SYSCALL_H

#include <stdbool.h>
#include <sys/syscall.h>

/* For results that are addresses, which may be negative numbers too. */
static inline bool mt_syscall_failed(long result)
{
	return result < 0 && result >= -4095;
}

#if defined(__x86_64__)
static inline long mt_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static inline long mt_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}
#else
#error "no raw system calls for this machine: see common/raw_syscall.h"
#endif

#define mt_syscall5(n, a, b, c, d, e) mt_syscall6((n), (a), (b), (c), (d), (e), 0)
#define mt_syscall4(n, a, b, c, d)    mt_syscall6((n), (a), (b), (c), (d), 0, 0)
#define mt_syscall3(n, a, b, c)	      mt_syscall6((n), (a), (b), (c), 0, 0, 0)
#define mt_syscall2(n, a, b)	      mt_syscall6((n), (a), (b), 0, 0, 0, 0)
#define mt_syscall1(n, a)	      mt_syscall6((n), (a), 0, 0, 0, 0, 0)
#define mt_syscall0(n)		      mt_syscall6((n), 0, 0, 0, 0, 0, 0)

#endif
