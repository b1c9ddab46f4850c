/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * operator new and delete, in all forms.
 *
 * Most operators new call malloc, and our malloc hook has then recorded the block. Those of an
 * allocator (jemalloc, mimalloc, tcmalloc) take it from within: such a new is "direct" and recorded
 * here. Which one it is shows at its first call, by whether the block that came back was recorded
 * meanwhile. Nothing is held across the call, since bad_alloc may unwind through it.
 *
 * A delete must be recorded before its call, when it does not show yet. One that comes from the
 * object that malloc comes from is recorded here, under the guard (it does not throw), so that a
 * free below it adds nothing. Any other passes through to free, unless an operator new of its own
 * object was found to be direct.
 */
#include "preload/hooks.h"

#include "preload/early.h"
#include "preload/emit.h"
#include "preload/real.h"

enum mode {
	MODE_UNKNOWN = 0,
	MODE_THROUGH,	/* malloc or free below records */
	MODE_DIRECT,	/* we record */
	MODE_DIRECT_ALL /* we record, and the guard hides what happens below */
};

#define OPERATORS_FIRST MT_REAL_INDEX(new_one)
#define OPERATORS_END	(MT_REAL_INDEX(delete_array_sized_aligned) + 1)

static uint8_t modes[OPERATORS_END]; /* enum mode; relaxed: every thread finds the same */

/* What the thread had recorded before the call. */
struct mark {
	const struct mt_rec *next;
	bool ready;
};

static struct mark mark_before(struct mt_thread *thread, size_t index)
{
	struct mark mark = { NULL, false };

	if (mt_load_relaxed(&modes[index]) != MODE_UNKNOWN || thread->guard != MT_GUARD_NONE)
		return mark;
	mt_guard_set(thread, MT_GUARD_WRITE);
	mark.ready = mt_emit_prepare(thread);
	mark.next = thread->writer.next;
	mt_emit_leave(thread, MT_GUARD_NONE);
	return mark;
}

/* True while the thread still writes into the chunk in which the mark was set. */
static bool is_in_chunk(const struct mt_writer *writer, const struct mark *mark)
{
	return writer->chunk != NULL && mark->next >= writer->chunk->records &&
	       mark->next <= writer->next;
}

/* An operator new may keep something of its own in front of the block that it gives out. */
static bool is_alloc_around(const struct mt_rec *rec, const void *block)
{
	uint64_t before = (uintptr_t)block - rec->addr;

	switch (rec->size_kind & 0xff) {
	case MT_REC_MALLOC:
	case MT_REC_CALLOC:
	case MT_REC_ALIGNED_ALLOC:
	case MT_REC_REALLOC_END:
		return before == 0 || before < rec->size_kind >> 8;
	default:
		return false;
	}
}

/*
 * True when an allocation around `block` was recorded since the mark, as far as it can be seen.
 * The newest record need not be it: that operator new may keep books of its own.
 */
static bool was_recorded(const struct mt_writer *writer, const struct mark *mark, const void *block)
{
	const struct mt_rec *rec = writer->next, *first;

	if (writer->chunk == NULL)
		return false;
	first = is_in_chunk(writer, mark) ? mark->next : writer->chunk->records;
	while (rec-- != first) {
		if (is_alloc_around(rec, block))
			return true;
	}
	return false;
}

/*
 * What holds for one operator of a library holds for all of them: its deletes take what any of its
 * news gave. (An allocator's own are recorded under the guard, whatever its news are.)
 */
static void learn(size_t index, enum mode mode)
{
	size_t i;

	mt_store_relaxed(&modes[index], (uint8_t)mode);
	if (mt_real_same_owner(index, MT_REAL_INDEX(malloc)))
		return;
	for (i = OPERATORS_FIRST; i < OPERATORS_END; i++) {
		if (mt_real_same_owner(index, i))
			mt_store_relaxed(&modes[i], (uint8_t)mode);
	}
}

static enum mode new_mode(const struct mt_thread *thread, size_t index, const struct mark *mark,
			  const void *block)
{
	enum mode mode = (enum mode)mt_load_relaxed(&modes[index]);

	if (mode != MODE_UNKNOWN)
		return mode;
	if (!mark->ready) /* nothing is recorded: only who counts the loss is open */
		return mt_real_same_owner(index, MT_REAL_INDEX(malloc)) ? MODE_DIRECT : mode;
	if (was_recorded(&thread->writer, mark, block))
		mode = MODE_THROUGH;
	else if (is_in_chunk(&thread->writer, mark) &&
		 (thread->writer.next != thread->writer.end || thread->writer.next == mark->next))
		mode = MODE_DIRECT;
	else
		return MODE_UNKNOWN; /* the malloc below may be in the last chunk, or lost */
	learn(index, mode);
	return mode;
}

static void *finish_new(size_t index, const struct mark *mark, enum mt_rec_kind kind, void *block,
			size_t size)
{
	struct mt_thread *thread = &mt_thread;

	if (block == NULL || thread->guard != MT_GUARD_NONE)
		return block;
	if (new_mode(thread, index, mark, block) == MODE_DIRECT) {
		mt_guard_set(thread, MT_GUARD_WRITE);
		mt_emit_after(thread, kind, block, size);
		mt_emit_leave(thread, MT_GUARD_NONE);
	}
	return block;
}

static enum mode delete_mode(size_t index)
{
	enum mode mode = (enum mode)mt_load_relaxed(&modes[index]);

	if (mt_likely(mode != MODE_UNKNOWN))
		return mode;
	mode = mt_real_same_owner(index, MT_REAL_INDEX(malloc)) ? MODE_DIRECT_ALL : MODE_THROUGH;
	mt_store_relaxed(&modes[index], (uint8_t)mode);
	return mode;
}

/* Records a delete that is direct. Returns the thread when the guard is set and to be cleared. */
static struct mt_thread *begin_delete(size_t index, const void *block)
{
	struct mt_thread *thread = &mt_thread;
	enum mode mode;

	if (block == NULL || thread->guard != MT_GUARD_NONE)
		return NULL;
	mode = delete_mode(index);
	if (mode == MODE_THROUGH)
		return NULL;
	mt_guard_set(thread, MT_GUARD_WRITE);
	mt_emit_before(thread, MT_REC_FREE, block, 0);
	mt_emit_leave(thread, mode == MODE_DIRECT_ALL ? MT_GUARD_CALL : MT_GUARD_NONE);
	return mode == MODE_DIRECT_ALL ? thread : NULL;
}

static void end_delete(struct mt_thread *thread)
{
	if (thread != NULL)
		mt_guard_set(thread, MT_GUARD_NONE);
}

/*
 * The function behind `index`; looked up anew as long as its library may go away. NULL when nobody
 * defines it: then it is malloc or free.
 */
static void *operator_at(size_t index, void *known, const void *caller)
{
	return mt_likely(known != NULL) ? known : mt_real_find(index, caller);
}

#define NEW(member, symbol, kind, fallback, parameters, values)                        \
	MT_HOOK void *mt_hook_##member parameters MT_LABEL(symbol);                    \
	MT_HOOK void *mt_hook_##member parameters                                      \
	{                                                                              \
		const size_t index = MT_REAL_INDEX(member);                            \
		void *(*real)parameters;                                               \
		struct mark mark;                                                      \
                                                                                       \
		if (mt_unlikely(!mt_early_is_relocated()))                             \
			return mt_early_alloc(size, 64);                               \
		real = (void *(*)parameters)operator_at(index, (void *)mt_real.member, \
							__builtin_return_address(0));  \
		if (mt_unlikely(real == NULL))                                         \
			return fallback;                                               \
		if (mt_likely(mt_load_relaxed(&modes[index]) == MODE_THROUGH))         \
			return real values;                                            \
		mark = mark_before(&mt_thread, index);                                 \
		return finish_new(index, &mark, kind, real values, size);              \
	}

#define DELETE(member, symbol, parameters, values)                                    \
	MT_HOOK void mt_hook_##member parameters MT_LABEL(symbol);                    \
	MT_HOOK void mt_hook_##member parameters                                      \
	{                                                                             \
		const size_t index = MT_REAL_INDEX(member);                           \
		void(*real) parameters;                                               \
		struct mt_thread *thread;                                             \
                                                                                      \
		if (mt_unlikely(!mt_early_is_relocated())) {                          \
			mt_early_free(block);                                         \
			return;                                                       \
		}                                                                     \
		real = (void(*) parameters)operator_at(index, (void *)mt_real.member, \
						       __builtin_return_address(0));  \
		if (mt_unlikely(real == NULL)) {                                      \
			MT_NAME(free)(block);                                         \
			return;                                                       \
		}                                                                     \
		if (mt_likely(mt_load_relaxed(&modes[index]) == MODE_THROUGH)) {      \
			real values;                                                  \
			return;                                                       \
		}                                                                     \
		thread = begin_delete(index, block);                                  \
		real values;                                                          \
		end_delete(thread);                                                   \
	}

NEW(new_one, "_Znwm", MT_REC_MALLOC, MT_NAME(malloc)(size), (size_t size), (size))
NEW(new_array, "_Znam", MT_REC_MALLOC, MT_NAME(malloc)(size), (size_t size), (size))
NEW(new_one_nothrow, "_ZnwmRKSt9nothrow_t", MT_REC_MALLOC, MT_NAME(malloc)(size),
    (size_t size, const void *tag), (size, tag))
NEW(new_array_nothrow, "_ZnamRKSt9nothrow_t", MT_REC_MALLOC, MT_NAME(malloc)(size),
    (size_t size, const void *tag), (size, tag))
NEW(new_one_aligned, "_ZnwmSt11align_val_t", MT_REC_ALIGNED_ALLOC,
    MT_NAME(aligned_alloc)(align, size), (size_t size, size_t align), (size, align))
NEW(new_array_aligned, "_ZnamSt11align_val_t", MT_REC_ALIGNED_ALLOC,
    MT_NAME(aligned_alloc)(align, size), (size_t size, size_t align), (size, align))
NEW(new_one_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", MT_REC_ALIGNED_ALLOC,
    MT_NAME(aligned_alloc)(align, size), (size_t size, size_t align, const void *tag),
    (size, align, tag))
NEW(new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t", MT_REC_ALIGNED_ALLOC,
    MT_NAME(aligned_alloc)(align, size), (size_t size, size_t align, const void *tag),
    (size, align, tag))

DELETE(delete_one, "_ZdlPv", (void *block), (block))
DELETE(delete_array, "_ZdaPv", (void *block), (block))
DELETE(delete_one_nothrow, "_ZdlPvRKSt9nothrow_t", (void *block, const void *tag), (block, tag))
DELETE(delete_array_nothrow, "_ZdaPvRKSt9nothrow_t", (void *block, const void *tag), (block, tag))
DELETE(delete_one_sized, "_ZdlPvm", (void *block, size_t size), (block, size))
DELETE(delete_array_sized, "_ZdaPvm", (void *block, size_t size), (block, size))
DELETE(delete_one_aligned, "_ZdlPvSt11align_val_t", (void *block, size_t align), (block, align))
DELETE(delete_array_aligned, "_ZdaPvSt11align_val_t", (void *block, size_t align), (block, align))
DELETE(delete_one_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t",
       (void *block, size_t align, const void *tag), (block, align, tag))
DELETE(delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t",
       (void *block, size_t align, const void *tag), (block, align, tag))
DELETE(delete_one_sized_aligned, "_ZdlPvmSt11align_val_t", (void *block, size_t size, size_t align),
       (block, size, align))
DELETE(delete_array_sized_aligned, "_ZdaPvmSt11align_val_t",
       (void *block, size_t size, size_t align), (block, size, align))
