/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/elf_lookup.h"

#include <stddef.h>

#define VERSION_HIDDEN 0x8000u

/* glibc adds the base to the addresses in the section when it loads an object; others do not. */
static const void *at(uintptr_t base, uintptr_t value)
{
	return (const void *)(value < base ? base + value : value);
}

bool mt_elf_open(uintptr_t base, const ElfW(Dyn) * dynamic, struct mt_elf *ret_elf)
{
	struct mt_elf elf = { .base = base };

	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		switch (dynamic->d_tag) {
		case DT_SYMTAB:
			elf.symbols = at(base, dynamic->d_un.d_ptr);
			break;
		case DT_STRTAB:
			elf.strings = at(base, dynamic->d_un.d_ptr);
			break;
		case DT_VERSYM:
			elf.versions = at(base, dynamic->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			elf.gnu_hash = at(base, dynamic->d_un.d_ptr);
			break;
		case DT_HASH:
			elf.sysv_hash = at(base, dynamic->d_un.d_ptr);
			break;
		default:
			break;
		}
	}
	if (elf.symbols == NULL || elf.strings == NULL ||
	    (elf.gnu_hash == NULL && elf.sysv_hash == NULL))
		return false;
	*ret_elf = elf;
	return true;
}

static bool same_name(const char *left, const char *right)
{
	while (*left != '\0' && *left == *right) {
		left++;
		right++;
	}
	return *left == *right;
}

static bool is_function(const struct mt_elf *elf, uint32_t index, const char *name)
{
	const ElfW(Sym) *symbol = &elf->symbols[index];
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	unsigned int bind = ELF64_ST_BIND(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
	       (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE) &&
	       same_name(elf->strings + symbol->st_name, name);
}

static bool is_default(const struct mt_elf *elf, uint32_t index)
{
	return elf->versions == NULL || (elf->versions[index] & VERSION_HIDDEN) == 0;
}

/* Calls `index` the best so far; returns true when it cannot get better. */
static bool consider(const struct mt_elf *elf, uint32_t index, const char *name, uint32_t *best)
{
	if (!is_function(elf, index, name))
		return false;
	*best = index;
	return is_default(elf, index);
}

static uint32_t find_gnu(const struct mt_elf *elf, const char *name)
{
	const uint32_t *table = elf->gnu_hash;
	uint32_t buckets = table[0], first = table[1], bloom_words = table[2], shift = table[3];
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)(table + 4);
	const uint32_t *bucket = (const uint32_t *)(bloom + bloom_words);
	const uint32_t *chain = bucket + buckets;
	const unsigned char *c;
	uint32_t hash = 5381, best = 0, index;
	const uint32_t bits = sizeof(ElfW(Addr)) * 8;
	ElfW(Addr) word, mask;

	for (c = (const unsigned char *)name; *c != '\0'; c++)
		hash = hash * 33 + *c;
	if (buckets == 0 || bloom_words == 0)
		return 0;
	word = bloom[hash / bits % bloom_words];
	mask = (ElfW(Addr))1 << hash % bits | (ElfW(Addr))1 << (hash >> shift) % bits;
	if ((word & mask) != mask)
		return 0;
	index = bucket[hash % buckets];
	if (index < first)
		return 0;
	for (;; index++) {
		uint32_t entry = chain[index - first];

		if ((entry | 1) == (hash | 1) && consider(elf, index, name, &best))
			return best;
		if ((entry & 1) != 0)
			return best;
	}
}

static uint32_t find_sysv(const struct mt_elf *elf, const char *name)
{
	const uint32_t *table = elf->sysv_hash;
	uint32_t buckets = table[0];
	const uint32_t *bucket = table + 2;
	const uint32_t *chain = bucket + buckets;
	const unsigned char *c;
	uint32_t hash = 0, best = 0, index;

	for (c = (const unsigned char *)name; *c != '\0'; c++) {
		uint32_t high;

		hash = (hash << 4) + *c;
		high = hash & 0xf0000000;
		hash ^= high >> 24;
		hash &= ~high;
	}
	if (buckets == 0)
		return 0;
	for (index = bucket[hash % buckets]; index != 0; index = chain[index]) {
		if (consider(elf, index, name, &best))
			return best;
	}
	return best;
}

void *mt_elf_find(const struct mt_elf *elf, const char *name)
{
	uint32_t index = elf->gnu_hash != NULL ? find_gnu(elf, name) : find_sysv(elf, name);
	const ElfW(Sym) *symbol = &elf->symbols[index];
	uintptr_t address;

	if (index == 0)
		return NULL;
	address = elf->base + symbol->st_value;
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		address = ((uintptr_t(*)(void))address)();
	return (void *)address;
}
