/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * dlopen and dlmopen. A library that is opened with RTLD_DEEPBIND, or into another namespace, finds
 * the malloc of its own libc before ours. That is the program's wish, and stays so; we say that it
 * was done. Whether the call succeeds is not known here: one that fails counts as well.
 *
 * The real functions look at who calls them, by their return address: his are the RUNPATH, the
 * $ORIGIN and the namespace. So they are jumped to, not called.
 *
 * Nothing is allocated, locked or asked of the kernel, but for the look-up where that is still to
 * be done. errno and what dlerror has to say stay.
 */
#include "preload/hooks.h"

#include <dlfcn.h>

#include "common/atomic.h"
#include "preload/guard.h"
#include "preload/image.h"
#include "preload/real.h"

#if defined(__has_attribute) && __has_attribute(musttail)
#define JUMPS
#define JUMP_TO __attribute__((musttail)) return
#else
#define JUMPS	__attribute__((optimize("O2", "optimize-sibling-calls"))) /* with any CFLAGS */
#define JUMP_TO return
#endif

/*
 * Before glibc 2.34 both are in libdl.so.2, which a program need not have at its start. Where a
 * library has brought it by now it is found from the caller on. NULL: there is none, and without us
 * only a weak reference could have led here, which would be 0. To its owner each call fails.
 */
#define NEXT(name) \
	((__typeof__(mt_real.name))mt_real_find(MT_REAL_INDEX(name), __builtin_return_address(0)))

static __attribute__((noinline, cold)) void note(enum mt_past past)
{
	if ((mt_load_relaxed(&mt_image.past_us) & past) != 0)
		return;
	(void)__atomic_fetch_or(&mt_image.past_us, (uint32_t)past, __ATOMIC_SEQ_CST);
	mt_image_tell_past_us(); /* seq_cst: see there */
}

/* Without a name it is the program itself; with RTLD_NOLOAD, something that is bound already. */
static inline bool opens_deep(const char *file, int flags)
{
	return mt_unlikely((flags & (RTLD_DEEPBIND | RTLD_NOLOAD)) == RTLD_DEEPBIND) &&
	       file != NULL && file[0] != '\0';
}

MT_HOOK JUMPS void *MT_NAME(dlopen)(const char *file, int flags)
{
	__typeof__(mt_real.dlopen) next = NEXT(dlopen);

	if (mt_unlikely(next == NULL))
		return NULL;
	if (opens_deep(file, flags))
		note(MT_PAST_DEEPBIND);
	JUMP_TO next(file, flags);
}

MT_HOOK JUMPS void *MT_NAME(dlmopen)(long lmid, const char *file, int flags)
{
	__typeof__(mt_real.dlmopen) next = NEXT(dlmopen);

	if (mt_unlikely(next == NULL))
		return NULL;
	if (lmid != LM_ID_BASE)
		note(MT_PAST_DLMOPEN);
	else if (opens_deep(file, flags))
		note(MT_PAST_DEEPBIND);
	JUMP_TO next(lmid, file, flags);
}
