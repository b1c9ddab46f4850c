/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds a defined symbol in one loaded object, by its own tables, without libc.
 */
#ifndef MT_PRELOAD_ELF_LOOKUP_H
#define MT_PRELOAD_ELF_LOOKUP_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct mt_elf {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Half) * versions; /* NULL: none */
	const uint32_t *gnu_hash;    /* one of the two is set */
	const uint32_t *sysv_hash;
};

/* Reads an object's dynamic section. Returns false when it has no symbols to look in. */
bool mt_elf_open(uintptr_t base, const ElfW(Dyn) * dynamic, struct mt_elf *ret_elf);

/*
 * Returns the function's address, of its default version when there is one (indirect functions are
 * asked), or NULL.
 */
void *mt_elf_find(const struct mt_elf *elf, const char *name);

#endif
