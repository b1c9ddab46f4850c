/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The allocator's entry points. An allocation is recorded after the real call and before its block
 * is given to the program; a free before the real call: so a record is visible before the block
 * can reach another thread (docs/order.md).
 */
#include "preload/hooks.h"

#include <errno.h>

#include "preload/early.h"
#include "preload/emit.h"
#include "preload/real.h"

/*
 * What a call does that finds the guard set: it comes from the next allocator itself, from a signal
 * handler, or before this library is relocated.
 */
static bool is_early(const struct mt_thread *thread)
{
	if (mt_unlikely(!mt_early_is_relocated()))
		return true;
	if (mt_load_relaxed(&thread->guard) == MT_GUARD_WRITE)
		mt_emit_interrupted(thread);
	return false;
}

static inline __attribute__((always_inline)) void *
finish_alloc(struct mt_thread *thread, enum mt_rec_kind kind, void *block, size_t size)
{
	if (mt_likely(block != NULL)) {
		mt_guard_set(thread, MT_GUARD_WRITE);
		mt_emit_after(thread, kind, block, size);
	}
	mt_emit_leave(thread, MT_GUARD_NONE);
	return block;
}

static __attribute__((noinline, cold)) void *nested_malloc(struct mt_thread *thread, size_t size)
{
	return is_early(thread) ? mt_early_alloc(size, 0) : mt_real.malloc(size);
}

MT_HOOK void *MT_NAME(malloc)(size_t size)
{
	struct mt_thread *thread = &mt_thread;
	void *block;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE))
		return nested_malloc(thread, size);
	mt_guard_set(thread, MT_GUARD_CALL);
	block = mt_real.malloc(size);
	return finish_alloc(thread, MT_REC_MALLOC, block, size);
}

static __attribute__((noinline, cold)) void nested_free(struct mt_thread *thread, void *block)
{
	if (is_early(thread))
		mt_early_free(block);
	else
		mt_real.free(block);
}

/* Records that `block` is about to be freed; the guard is then at MT_GUARD_CALL. */
static inline void begin_free(struct mt_thread *thread, const void *block)
{
	mt_guard_set(thread, MT_GUARD_WRITE);
	if (mt_likely(block != NULL))
		mt_emit_before(thread, MT_REC_FREE, block, 0);
	mt_emit_leave(thread, MT_GUARD_CALL);
}

MT_HOOK void MT_NAME(free)(void *block)
{
	struct mt_thread *thread = &mt_thread;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE)) {
		nested_free(thread, block);
		return;
	}
	begin_free(thread, block);
	mt_real.free(block);
	mt_guard_set(thread, MT_GUARD_NONE);
}

/* These three are in no or few libraries' malloc, and their names are not reserved to it. */

MT_HOOK void MT_NAME(cfree)(void *block)
{
	struct mt_thread *thread = &mt_thread;
	void (*others)(void *);

	if (mt_unlikely(thread->guard != MT_GUARD_NONE)) {
		nested_free(thread, block);
		return;
	}
	others = (void (*)(void *))mt_real_find_others(MT_REAL_INDEX(cfree),
						       __builtin_return_address(0));
	if (mt_unlikely(others != NULL)) {
		others(block);
		return;
	}
	begin_free(thread, block);
	mt_real.cfree(block);
	mt_guard_set(thread, MT_GUARD_NONE);
}

MT_HOOK void MT_NAME(free_sized)(void *block, size_t size)
{
	struct mt_thread *thread = &mt_thread;
	void (*others)(void *, size_t);

	if (mt_unlikely(thread->guard != MT_GUARD_NONE)) {
		nested_free(thread, block);
		return;
	}
	others = (void (*)(void *, size_t))mt_real_find_others(MT_REAL_INDEX(free_sized),
							       __builtin_return_address(0));
	if (mt_unlikely(others != NULL)) {
		others(block, size);
		return;
	}
	begin_free(thread, block);
	mt_real.free_sized(block, size);
	mt_guard_set(thread, MT_GUARD_NONE);
}

MT_HOOK void MT_NAME(free_aligned_sized)(void *block, size_t align, size_t size)
{
	struct mt_thread *thread = &mt_thread;
	void (*others)(void *, size_t, size_t);

	if (mt_unlikely(thread->guard != MT_GUARD_NONE)) {
		nested_free(thread, block);
		return;
	}
	others = (void (*)(void *, size_t, size_t))mt_real_find_others(
		MT_REAL_INDEX(free_aligned_sized), __builtin_return_address(0));
	if (mt_unlikely(others != NULL)) {
		others(block, align, size);
		return;
	}
	begin_free(thread, block);
	mt_real.free_aligned_sized(block, align, size);
	mt_guard_set(thread, MT_GUARD_NONE);
}

static __attribute__((noinline, cold)) void *nested_calloc(struct mt_thread *thread, size_t count,
							   size_t each)
{
	size_t size;

	if (!is_early(thread))
		return mt_real.calloc(count, each);
	return __builtin_mul_overflow(count, each, &size) ? NULL : mt_early_alloc(size, 0);
}

MT_HOOK void *MT_NAME(calloc)(size_t count, size_t each)
{
	struct mt_thread *thread = &mt_thread;
	void *block;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE))
		return nested_calloc(thread, count, each);
	mt_guard_set(thread, MT_GUARD_CALL);
	block = mt_real.calloc(count, each);
	/* The product cannot have overflowed when there is a block. */
	return finish_alloc(thread, MT_REC_CALLOC, block, count * each);
}

/*
 * The record after a realloc. NULL for a size of 0 means that the block was freed, unless errno
 * says that the call failed; errno was 0 before the call and gets its old value back when the call
 * left it alone.
 */
static void *finish_realloc(struct mt_thread *thread, void *old, void *block, size_t size,
			    int saved_errno)
{
	mt_guard_set(thread, MT_GUARD_WRITE);
	if (mt_likely(block != NULL))
		mt_emit_after(thread, MT_REC_REALLOC_END, block, size);
	else if (size == 0 && old != NULL && errno == 0)
		mt_emit_after(thread, MT_REC_REALLOC_FREED, old, 0);
	else
		mt_emit_after(thread, MT_REC_REALLOC_FAILED, old, 0);
	if (errno == 0)
		errno = saved_errno;
	mt_emit_leave(thread, MT_GUARD_NONE);
	return block;
}

MT_HOOK void *MT_NAME(realloc)(void *old, size_t size)
{
	struct mt_thread *thread = &mt_thread;
	int saved_errno;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE))
		return is_early(thread) ? mt_early_realloc(old, size) : mt_real.realloc(old, size);
	saved_errno = errno;
	mt_guard_set(thread, MT_GUARD_WRITE);
	mt_emit_before(thread, MT_REC_REALLOC_BEGIN, old, 0);
	mt_emit_leave(thread, MT_GUARD_CALL);
	errno = 0;
	return finish_realloc(thread, old, mt_real.realloc(old, size), size, saved_errno);
}

MT_HOOK void *MT_NAME(reallocarray)(void *old, size_t count, size_t each)
{
	struct mt_thread *thread = &mt_thread;
	int saved_errno;
	size_t size;

	if (__builtin_mul_overflow(count, each, &size)) /* fails without touching the block */
		return mt_real.reallocarray(old, count, each);
	if (mt_unlikely(thread->guard != MT_GUARD_NONE))
		return is_early(thread) ? mt_early_realloc(old, size)
					: mt_real.reallocarray(old, count, each);
	saved_errno = errno;
	mt_guard_set(thread, MT_GUARD_WRITE);
	mt_emit_before(thread, MT_REC_REALLOC_BEGIN, old, 0);
	mt_emit_leave(thread, MT_GUARD_CALL);
	errno = 0;
	return finish_realloc(thread, old, mt_real.reallocarray(old, count, each), size,
			      saved_errno);
}

MT_HOOK int MT_NAME(posix_memalign)(void **ret_block, size_t align, size_t size)
{
	struct mt_thread *thread = &mt_thread;
	int result;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE)) {
		if (!is_early(thread))
			return mt_real.posix_memalign(ret_block, align, size);
		*ret_block = mt_early_alloc(size, align);
		return *ret_block == NULL ? ENOMEM : 0;
	}
	mt_guard_set(thread, MT_GUARD_CALL);
	result = mt_real.posix_memalign(ret_block, align, size);
	(void)finish_alloc(thread, MT_REC_ALIGNED_ALLOC, result == 0 ? *ret_block : NULL,
			   size); /* gives back the block */
	return result;
}

MT_HOOK void *MT_NAME(aligned_alloc)(size_t align, size_t size)
{
	struct mt_thread *thread = &mt_thread;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE))
		return is_early(thread) ? mt_early_alloc(size, align)
					: mt_real.aligned_alloc(align, size);
	mt_guard_set(thread, MT_GUARD_CALL);
	return finish_alloc(thread, MT_REC_ALIGNED_ALLOC, mt_real.aligned_alloc(align, size), size);
}

MT_HOOK void *MT_NAME(memalign)(size_t align, size_t size)
{
	struct mt_thread *thread = &mt_thread;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE))
		return is_early(thread) ? mt_early_alloc(size, align)
					: mt_real.memalign(align, size);
	mt_guard_set(thread, MT_GUARD_CALL);
	return finish_alloc(thread, MT_REC_ALIGNED_ALLOC, mt_real.memalign(align, size), size);
}

MT_HOOK void *MT_NAME(valloc)(size_t size)
{
	struct mt_thread *thread = &mt_thread;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE))
		return is_early(thread) ? mt_early_alloc(size, MT_PAGE_BYTES)
					: mt_real.valloc(size);
	mt_guard_set(thread, MT_GUARD_CALL);
	return finish_alloc(thread, MT_REC_ALIGNED_ALLOC, mt_real.valloc(size), size);
}

MT_HOOK void *MT_NAME(pvalloc)(size_t size)
{
	struct mt_thread *thread = &mt_thread;

	if (mt_unlikely(thread->guard != MT_GUARD_NONE))
		return is_early(thread) ? mt_early_alloc(size, MT_PAGE_BYTES)
					: mt_real.pvalloc(size);
	mt_guard_set(thread, MT_GUARD_CALL);
	return finish_alloc(thread, MT_REC_ALIGNED_ALLOC, mt_real.pvalloc(size), size);
}
