/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The longjmp family. A signal handler may leave by it while its thread is inside a hook, whose
 * guard would then stay set for good.
 */
#include "preload/hooks.h"

#include "preload/guard.h"
#include "preload/real.h"

#define JUMP(name, symbol)                                                                        \
	MT_HOOK _Noreturn void mt_hook_##name(void *buffer, int value) MT_LABEL(symbol);          \
	MT_HOOK _Noreturn void mt_hook_##name(void *buffer, int value)                            \
	{                                                                                         \
		(void)mt_real_resolve(); /* false only inside the look-up, which does not jump */ \
		mt_guard_set(&mt_thread, MT_GUARD_NONE);                                          \
		mt_real.name(buffer, value);                                                      \
		__builtin_unreachable();                                                          \
	}

JUMP(longjmp, "longjmp")
JUMP(_longjmp, "_longjmp")
JUMP(siglongjmp, "siglongjmp")
JUMP(__longjmp_chk, "__longjmp_chk")
