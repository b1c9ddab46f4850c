/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/real.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "common/atomic.h"
#include "preload/early.h"
#include "preload/elf_lookup.h"
#include "preload/guard.h"

struct name {
	const char *symbol;
	uint32_t offset; /* in struct mt_real */
};

#define NAME(result, member, symbol, arguments) { symbol, offsetof(struct mt_real, member) },
static const struct name names[] = { MT_REAL_ALL(NAME) };
#undef NAME

#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

struct search {
	void *found[NAME_COUNT];
	uint16_t owner[NAME_COUNT]; /* which object, counted from 1 */
	uint32_t objects;	    /* seen so far */
	bool behind_us;		    /* the walk has passed us, or all are looked at */
	bool redirected;	    /* valgrind may have redirected our heap functions */
};

/* For a function that is looked up late. */
struct late_search {
	size_t index;
	const void *caller;
	void *found; /* the caller's own, or the first one */
	bool stays;
	bool behind_us;
};

struct mt_objects mt_objects;
static uint16_t owners[NAME_COUNT];
static uint32_t resolved;
static uint32_t heap_called; /* a heap function of ours was, before the look-up */

/* The heap of an object in front of us. NULL: there is none, or it has none. */
static struct {
	void *(*malloc)(size_t);
	void (*free)(void *);
} ahead;
static const struct mt_thread *resolving; /* whose thread looks up */

/*
 * The heap functions before the look-up: look up, and call what was found. A resolver of an
 * indirect function may allocate while its thread looks up: that is served from the arena.
 */

static bool resolve_for_heap(void)
{
	mt_store_relaxed(&heap_called, 1);
	return mt_real_resolve();
}

static void *first_malloc(size_t size)
{
	if (!resolve_for_heap())
		return mt_early_alloc(size, 0);
	return mt_real.malloc(size);
}

static void first_free(void *block)
{
	if (resolve_for_heap())
		mt_real.free(block);
	else
		mt_early_free(block);
}

static void *first_calloc(size_t count, size_t each)
{
	if (!resolve_for_heap())
		return mt_early_alloc(count * each, 0);
	return mt_real.calloc(count, each);
}

static void *first_realloc(void *block, size_t size)
{
	if (!resolve_for_heap())
		return mt_early_realloc(block, size);
	return mt_real.realloc(block, size);
}

static void *first_reallocarray(void *block, size_t count, size_t each)
{
	resolve_for_heap();
	return mt_real.reallocarray(block, count, each);
}

static int first_posix_memalign(void **ret_block, size_t align, size_t size)
{
	resolve_for_heap();
	return mt_real.posix_memalign(ret_block, align, size);
}

static void *first_aligned_alloc(size_t align, size_t size)
{
	resolve_for_heap();
	return mt_real.aligned_alloc(align, size);
}

static void *first_memalign(size_t align, size_t size)
{
	resolve_for_heap();
	return mt_real.memalign(align, size);
}

static void *first_valloc(size_t size)
{
	resolve_for_heap();
	return mt_real.valloc(size);
}

static void *first_pvalloc(size_t size)
{
	resolve_for_heap();
	return mt_real.pvalloc(size);
}

static void first_free_sized(void *block, size_t size)
{
	resolve_for_heap();
	mt_real.free_sized(block, size);
}

static void first_free_aligned_sized(void *block, size_t align, size_t size)
{
	resolve_for_heap();
	mt_real.free_aligned_sized(block, align, size);
}

struct mt_real mt_real = {
	.malloc = first_malloc,
	.free = first_free,
	.calloc = first_calloc,
	.realloc = first_realloc,
	.reallocarray = first_reallocarray,
	.posix_memalign = first_posix_memalign,
	.aligned_alloc = first_aligned_alloc,
	.memalign = first_memalign,
	.valloc = first_valloc,
	.pvalloc = first_pvalloc,
	.free_sized = first_free_sized,
	.free_aligned_sized = first_free_aligned_sized,
	.cfree = first_free,
};

/* What the next in line may lack, made from what it has. */

static void *made_reallocarray(void *block, size_t count, size_t each)
{
	size_t size;

	if (__builtin_mul_overflow(count, each, &size)) {
		errno = ENOMEM;
		return NULL;
	}
	return mt_real.realloc(block, size);
}

static void made_free_sized(void *block, size_t size)
{
	(void)size; /* a hint that free has no use for */
	mt_real.free(block);
}

static void made_free_aligned_sized(void *block, size_t align, size_t size)
{
	(void)align; /* as above */
	(void)size;
	mt_real.free(block);
}

static struct mt_range object_range(const struct dl_phdr_info *info)
{
	struct mt_range range = { .from = UINTPTR_MAX, .to = 0 };
	uint32_t i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		if (from < range.from)
			range.from = from;
		if (from + part->p_memsz > range.to)
			range.to = from + part->p_memsz;
	}
	if (range.from > range.to)
		range.from = range.to;
	return range;
}

static const ElfW(Dyn) * object_dynamic(const struct dl_phdr_info *info)
{
	uint32_t i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	}
	return NULL;
}

static void search_object(struct search *search, const struct mt_elf *elf,
			  const struct mt_range *range)
{
	size_t i;

	for (i = 0; i < NAME_COUNT; i++) {
		if (search->found[i] != NULL)
			continue;
		search->found[i] = mt_elf_find(elf, names[i].symbol);
		if (search->found[i] == NULL)
			continue;
		search->owner[i] = (uint16_t)search->objects;
		if (names[i].offset == offsetof(struct mt_real, malloc))
			mt_objects.heap = *range;
	}
}

static void note_ahead(const struct mt_elf *elf)
{
	void *found = mt_elf_find(elf, "malloc");

	memcpy(&ahead.malloc, &found, sizeof(found));
	found = mt_elf_find(elf, "free");
	memcpy(&ahead.free, &found, sizeof(found));
	if (ahead.free == NULL)
		ahead.malloc = NULL;
}

/*
 * Valgrind's tools that have a heap of their own (memcheck, massif, dhat, ...) do not stand before
 * the functions of others: they redirect them, ours too. This is how they name what they put in
 * malloc's place in each object (valgrind's pub_tool_redir.h).
 */
static bool redirects(const struct mt_elf *elf)
{
	return mt_elf_find(elf, "_vgr10010ZU_VgSoSynsomalloc_malloc") != NULL;
}

static int visit(struct dl_phdr_info *info, size_t info_bytes, void *context)
{
	struct search *search = context;
	struct mt_range range = object_range(info);
	const ElfW(Dyn) *dynamic = object_dynamic(info);
	bool executable = search->objects++ == 0;
	struct mt_elf elf;

	(void)info_bytes; /* the members that we read were always there */
	if (mt_range_has(&range, &mt_real)) {
		/* What a call of ours comes to then shows whether it is redirected. */
		if (search->redirected && dynamic != NULL &&
		    mt_elf_open(info->dlpi_addr, dynamic, &elf))
			note_ahead(&elf);
		mt_objects.self = range;
		mt_objects.self_path = info->dlpi_name;
		search->behind_us = true;
		return 0;
	}
	if (dynamic == NULL || !mt_elf_open(info->dlpi_addr, dynamic, &elf))
		return 0;
	if (executable) {
		mt_objects.executable = range;
		mt_objects.executable_defines = mt_elf_find(&elf, "malloc") != NULL;
	}
	if (mt_elf_find(&elf, "__libc_start_main") != NULL) {
		mt_objects.libc = range;
		mt_objects.clock_gettime = mt_elf_find(&elf, "clock_gettime");
	}
	if (range.from == getauxval(AT_BASE))
		mt_objects.linker = range;
	if (search->behind_us) {
		search_object(search, &elf, &range);
	} else if (!executable) {
		search->redirected = search->redirected || redirects(&elf);
		if (ahead.malloc == NULL)
			note_ahead(&elf);
	}
	return 0;
}

static void fill_gaps(void)
{
	if (mt_real.reallocarray == NULL || mt_real.reallocarray == first_reallocarray)
		mt_real.reallocarray = made_reallocarray;
	if (mt_real.free_sized == NULL || mt_real.free_sized == first_free_sized)
		mt_real.free_sized = made_free_sized;
	if (mt_real.free_aligned_sized == NULL ||
	    mt_real.free_aligned_sized == first_free_aligned_sized)
		mt_real.free_aligned_sized = made_free_aligned_sized;
	if (mt_real.cfree == NULL || mt_real.cfree == first_free)
		mt_real.cfree = mt_real.free;
}

/* Should there be no heap at all behind us, ours serves what little it can. */
static void *early_malloc(size_t size)
{
	return mt_early_alloc(size, 0);
}

bool mt_real_resolve(void)
{
	struct search search = { .objects = 0 };
	size_t i;

	if (mt_load_acquire(&resolved) != 0)
		return true;
	if (mt_load_relaxed(&resolving) == &mt_thread)
		return false;
	mt_store_relaxed(&resolving, &mt_thread);
	dl_iterate_phdr(visit, &search);
	/* Loaded by dlopen we may stand behind libc: then take what is anywhere. */
	search.behind_us = true;
	search.objects = 0;
	if (search.found[0] == NULL)
		dl_iterate_phdr(visit, &search);
	for (i = 0; i < NAME_COUNT; i++) {
		if (search.found[i] != NULL)
			memcpy((char *)&mt_real + names[i].offset, &search.found[i],
			       sizeof(void *));
		owners[i] = search.owner[i];
	}
	if (search.found[0] == NULL)
		mt_real.malloc = early_malloc;
	fill_gaps();
	mt_early_guard_real();
	mt_store_release(&resolved, 1);
	return true;
}

static void *(*next_malloc)(size_t);

static void *note_malloc(size_t size)
{
	mt_store_relaxed(&heap_called, 1);
	return next_malloc(size);
}

/* Whether it passes calls on is not written in its tables, so it is called. */
bool mt_real_is_reached(bool may_call)
{
	if (ahead.malloc == NULL || mt_load_relaxed(&heap_called) != 0)
		return true;
	if (!may_call)
		return false;
	next_malloc = mt_real.malloc;
	mt_store_release(&mt_real.malloc, note_malloc);
	ahead.free(ahead.malloc(1));
	mt_store_release(&mt_real.malloc, next_malloc);
	return mt_load_relaxed(&heap_called) != 0;
}

bool mt_real_same_owner(size_t left, size_t right)
{
	return owners[left] != 0 && owners[left] == owners[right];
}

/* The C++ run-time libraries are never unloaded once something of theirs is bound. */
static bool is_cxx_runtime(const char *path)
{
	return strstr(path, "/libstdc++.so") != NULL || strstr(path, "/libc++.so") != NULL ||
	       strstr(path, "/libc++abi.so") != NULL;
}

static int visit_late(struct dl_phdr_info *info, size_t info_bytes, void *context)
{
	struct late_search *search = context;
	struct mt_range range = object_range(info);
	const ElfW(Dyn) *dynamic = object_dynamic(info);
	bool own = mt_range_has(&range, search->caller);
	struct mt_elf elf;
	void *found;

	(void)info_bytes; /* as above */
	if (mt_range_has(&range, &mt_real)) {
		search->behind_us = true;
		return 0;
	}
	if (!search->behind_us || (search->found != NULL && !own) || dynamic == NULL ||
	    !mt_elf_open(info->dlpi_addr, dynamic, &elf))
		return 0;
	found = mt_elf_find(&elf, names[search->index].symbol);
	if (found == NULL)
		return 0;
	search->found = found;
	search->stays = is_cxx_runtime(info->dlpi_name);
	return own;
}

static void *find_late(size_t index, const void *caller)
{
	struct late_search search = { .index = index, .caller = caller };

	dl_iterate_phdr(visit_late, &search);
	if (search.stays)
		memcpy((char *)&mt_real + names[index].offset, &search.found, sizeof(void *));
	return search.found;
}

void *mt_real_find(size_t index, const void *caller)
{
	void *known;

	(void)mt_real_resolve(); /* false only inside the look-up, which does not come here */
	known = ((void **)&mt_real)[index];
	return known != NULL ? known : find_late(index, caller);
}

void *mt_real_find_others(size_t index, const void *caller)
{
	void *next;

	(void)mt_real_resolve(); /* false only inside the look-up, which does not come here */
	if (owners[index] == 0)
		return find_late(index, caller);
	next = ((void **)&mt_real)[index];
	if (mt_range_has(&mt_objects.heap, next) || mt_range_has(&mt_objects.libc, next) ||
	    mt_range_has(&mt_objects.self, next))
		return NULL;
	return next;
}
