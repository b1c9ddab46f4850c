/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mmap, munmap and mremap, as far as the program itself calls them: from outside the object that
 * provides malloc, the C library and its loader. What an allocator maps for itself
 * is no event.
 */
#include "preload/hooks.h"

#include <stdint.h>
#include <sys/mman.h>

#include "common/raw_syscall.h"
#include "preload/attach.h"
#include "preload/early.h"
#include "preload/emit.h"
#include "preload/real.h"

/* False before we are relocated: then only raw calls are possible. */
static bool is_up(void)
{
	return mt_likely(mt_early_is_relocated()) && mt_real_resolve();
}

/*
 * Whether a call from `caller` is to be recorded. Inside a hook only what the executable calls is
 * sure to be the program's: a signal handler. The rest may be an allocator's helper.
 */
static bool is_programs(const struct mt_thread *thread, const void *caller)
{
	if (mt_range_has(&mt_objects.heap, caller) || mt_range_has(&mt_objects.libc, caller) ||
	    mt_range_has(&mt_objects.linker, caller))
		return false;
	if (thread->guard == MT_GUARD_CALL && !mt_range_has(&mt_objects.executable, caller))
		return false;
	if (mt_load_relaxed(&mt_image.recording) == MT_RECORDING_NEW &&
	    thread->guard == MT_GUARD_NONE)
		mt_attach();
	return mt_image.mmap_events != 0;
}

static void record(struct mt_thread *thread, enum mt_rec_kind kind, const void *start, size_t len)
{
	uint64_t guard = thread->guard;

	if (guard == MT_GUARD_WRITE) {
		mt_emit_defer(thread, kind, start, len);
		return;
	}
	mt_guard_set(thread, MT_GUARD_WRITE);
	if (kind == MT_REC_MUNMAP)
		mt_emit_before(thread, kind, start, len);
	else
		mt_emit_after(thread, kind, start, len);
	mt_emit_leave(thread, guard);
}

static void *finish_map(const void *caller, void *start, size_t len)
{
	struct mt_thread *thread = &mt_thread;

	if (start != MAP_FAILED && is_programs(thread, caller))
		record(thread, MT_REC_MMAP, start, len);
	return start;
}

static void *raw_map(void *start, size_t len, int protection, int flags, int fd, off_t offset)
{
	long result = mt_syscall6(SYS_mmap, (long)start, (long)len, protection, flags, fd, offset);

	return mt_syscall_failed(result) ? MAP_FAILED : (void *)result;
}

MT_HOOK void *MT_NAME(mmap)(void *start, size_t len, int protection, int flags, int fd,
			    off_t offset)
{
	if (!is_up())
		return raw_map(start, len, protection, flags, fd, offset);
	return finish_map(__builtin_return_address(0),
			  mt_real.mmap(start, len, protection, flags, fd, offset), len);
}

MT_HOOK void *MT_NAME(mmap64)(void *start, size_t len, int protection, int flags, int fd,
			      off_t offset)
{
	if (!is_up())
		return raw_map(start, len, protection, flags, fd, offset);
	return finish_map(__builtin_return_address(0),
			  mt_real.mmap64(start, len, protection, flags, fd, offset), len);
}

/*
 * Recorded before the call, like a free. What fails must leave no event: what is sure to fail is
 * left out, and what fails all the same (too many mappings) is taken back by a second record.
 */
MT_HOOK int MT_NAME(munmap)(void *start, size_t len)
{
	struct mt_thread *thread = &mt_thread;
	bool recorded;
	int result;

	if (!is_up())
		return mt_syscall2(SYS_munmap, (long)start, (long)len) == 0 ? 0 : -1;
	recorded = len != 0 && ((uintptr_t)start & 4095) == 0 &&
		   (uintptr_t)start <= UINTPTR_MAX - len &&
		   is_programs(thread, __builtin_return_address(0));
	if (recorded)
		record(thread, MT_REC_MUNMAP, start, len);
	result = mt_real.munmap(start, len);
	if (recorded && result != 0)
		record(thread, MT_REC_MMAP, start, len);
	return result;
}

/* Since Linux 5.7: the old place stays mapped, empty. */
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

MT_HOOK void *mt_hook_mremap(void *start, size_t old_len, size_t len, int flags, void *wanted)
	MT_LABEL("mremap");

/*
 * A munmap and a mmap. What gives address space back, by moving or shrinking, is recorded before
 * the call and taken back when it fails: once the kernel has it, another thread may get it. What
 * only grows in place fails often, and rightly, and is recorded after the call.
 */
MT_HOOK void *mt_hook_mremap(void *start, size_t old_len, size_t len, int flags, void *wanted)
{
	struct mt_thread *thread = &mt_thread;
	bool recorded, gives_back, early;
	void *result;

	if (!is_up()) {
		long raw = mt_syscall5(SYS_mremap, (long)start, (long)old_len, (long)len, flags,
				       (long)wanted);

		return mt_syscall_failed(raw) ? MAP_FAILED : (void *)raw;
	}
	recorded = is_programs(thread, __builtin_return_address(0));
	/* A length of 0 makes a second mapping of shared memory. */
	gives_back = old_len != 0 && (flags & MREMAP_DONTUNMAP) == 0;
	early = recorded && gives_back && ((uintptr_t)start & 4095) == 0 &&
		((flags & MREMAP_MAYMOVE) != 0 || len < old_len);
	if (early)
		record(thread, MT_REC_MUNMAP, start, old_len);
	result = mt_real.mremap(start, old_len, len, flags, wanted);
	if (result == MAP_FAILED && early)
		record(thread, MT_REC_MMAP, start, old_len);
	if (result == MAP_FAILED || !recorded)
		return result;
	if (gives_back && !early)
		record(thread, MT_REC_MUNMAP, start, old_len);
	record(thread, MT_REC_MMAP, result, len);
	return result;
}
