/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/allocator.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMEMBERED 64

/* Where a name's text lies in the table; a tail of a longer name may come out as well. */
#define PLACES_MAX  256
#define PIECE_BYTES 65536
#define NAME_BYTES  32
/* The search reads this much of a table at most: larger ones than any program has. */
#define TABLE_MAX (UINT64_C(1) << 30)
/* And this much of a section of constants, for the marks: some ms. */
#define CONSTANTS_MAX (UINT64_C(1) << 23)

struct known_file {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	bool own;
};

struct mt_allocator {
	struct known_file files[REMEMBERED];
	size_t count; /* looked at so far */
};

/* What the allocators say when something is wrong: in a stripped file only that is left of them. */
static const char *const marks[] = { "<jemalloc>: ", "mimalloc: error: ",
				     "tcmalloc: large alloc " };

#define MARK_BYTES 32

struct search {
	int fd;
	bool stripped; /* of the full table of symbols */
	Elf64_Shdr symbols;
	Elf64_Shdr strings;
	uint32_t places[PLACES_MAX];
	size_t place_count;
};

struct mt_allocator *mt_allocator_new(void)
{
	return calloc(1, sizeof(struct mt_allocator));
}

void mt_allocator_free(struct mt_allocator *allocator)
{
	free(allocator);
}

static bool read_at(int fd, void *buffer, size_t len, uint64_t offset)
{
	ssize_t n;

	if (offset > INT64_MAX - len)
		return false;
	n = pread(fd, buffer, len, (off_t)offset);
	return n >= 0 && (size_t)n == len;
}

static bool read_header(int fd, Elf64_Ehdr *ret_header)
{
	return read_at(fd, ret_header, sizeof(*ret_header), 0) &&
	       memcmp(ret_header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       ret_header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ret_header->e_shentsize == sizeof(Elf64_Shdr);
}

/* The full table of symbols, else the one for the loader. */
static bool find_tables(struct search *search)
{
	Elf64_Shdr section;
	Elf64_Ehdr header;
	uint32_t i;

	search->stripped = true;
	if (!read_header(search->fd, &header))
		return false;
	for (i = 0; i < header.e_shnum; i++) {
		if (!read_at(search->fd, &section, sizeof(section),
			     header.e_shoff + (uint64_t)i * sizeof(section)))
			return false;
		if (section.sh_type == SHT_SYMTAB ||
		    (section.sh_type == SHT_DYNSYM && search->symbols.sh_type != SHT_SYMTAB))
			search->symbols = section;
		if (section.sh_type == SHT_SYMTAB)
			search->stripped = false;
	}
	return search->symbols.sh_type != SHT_NULL && search->symbols.sh_link < header.e_shnum &&
	       read_at(search->fd, &search->strings, sizeof(search->strings),
		       header.e_shoff + (uint64_t)search->symbols.sh_link * sizeof(section)) &&
	       search->strings.sh_size <= TABLE_MAX && search->symbols.sh_size <= TABLE_MAX;
}

/* malloc itself, and what the allocators call it that are linked into programs. */
static const char *const names[] = {
	"malloc",    "_rjem_malloc",	"_rjem_mallocx",     "je_malloc", "je_mallocx",
	"mi_malloc", "tc_malloc",	"mi_malloc_aligned", "rpmalloc",  "sn_malloc",
	"dlmalloc",  "rpaligned_alloc", "sn_rust_alloc",
};

static void note_places(struct search *search, const char *piece, size_t len, uint64_t offset)
{
	const char *found;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t name_len = strlen(names[i]) + 1;
		const char *from = piece;

		while (search->place_count < PLACES_MAX &&
		       (found = memmem(from, len - (size_t)(from - piece), names[i], name_len))) {
			search->places[search->place_count++] =
				(uint32_t)(offset + (uint64_t)(found - piece));
			from = found + 1;
		}
	}
}

/* Looks for the names' texts, in pieces that overlap by a name. */
static bool find_places(struct search *search, char *piece)
{
	uint64_t at = 0;

	while (at < search->strings.sh_size) {
		uint64_t left = search->strings.sh_size - at;
		size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

		if (!read_at(search->fd, piece, len, search->strings.sh_offset + at))
			return false;
		note_places(search, piece, len, at);
		if (len == left)
			break;
		at += len - NAME_BYTES;
	}
	return search->place_count != 0;
}

static bool is_place(const struct search *search, uint32_t name)
{
	size_t i;

	for (i = 0; i < search->place_count; i++) {
		if (search->places[i] == name)
			return true;
	}
	return false;
}

/* Is one of the names that of a function that the file defines? */
static bool is_defined(const struct search *search, char *piece)
{
	const size_t step = PIECE_BYTES - PIECE_BYTES % sizeof(Elf64_Sym);
	uint64_t at;

	for (at = 0; at < search->symbols.sh_size; at += step) {
		uint64_t left = search->symbols.sh_size - at;
		size_t len = left < step ? (size_t)left : step, i;
		Elf64_Sym symbol;

		if (!read_at(search->fd, piece, len, search->symbols.sh_offset + at))
			return false;
		for (i = 0; i + sizeof(symbol) <= len; i += sizeof(symbol)) {
			memcpy(&symbol, piece + i, sizeof(symbol));
			if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
			    symbol.st_shndx != SHN_UNDEF && is_place(search, symbol.st_name))
				return true;
		}
	}
	return false;
}

static bool is_mark(const char *piece, size_t len, size_t colon)
{
	size_t i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		size_t before = strcspn(marks[i], ":"), mark_len = strlen(marks[i]);

		if (colon >= before && len - (colon - before) >= mark_len &&
		    memcmp(piece + colon - before, marks[i], mark_len) == 0)
			return true;
	}
	return false;
}

/* By their colons: the constants of a compiler are 10 MB, and its program waits for us. */
static bool has_mark(const char *piece, size_t len)
{
	const char *colon = piece;

	while ((colon = memchr(colon, ':', len - (size_t)(colon - piece)))) {
		if (colon > piece && (colon[-1] == 'c' || colon[-1] == '>') &&
		    is_mark(piece, len, (size_t)(colon - piece)))
			return true;
		colon++;
	}
	return false;
}

static bool section_has_mark(int fd, const Elf64_Shdr *section, char *piece)
{
	uint64_t at = 0;

	while (at < section->sh_size && at < CONSTANTS_MAX) {
		uint64_t left = section->sh_size - at;
		size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

		if (!read_at(fd, piece, len, section->sh_offset + at))
			return false;
		if (has_mark(piece, len))
			return true;
		if (len == left)
			break;
		at += len - MARK_BYTES;
	}
	return false;
}

/* Looks through the constants of the file. */
static bool constants_have_mark(int fd, char *piece)
{
	const uint64_t flags = SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR;
	Elf64_Shdr section;
	Elf64_Ehdr header;
	uint32_t i;

	if (!read_header(fd, &header))
		return false;
	for (i = 0; i < header.e_shnum; i++) {
		if (!read_at(fd, &section, sizeof(section),
			     header.e_shoff + (uint64_t)i * sizeof(section)))
			return false;
		if (section.sh_type == SHT_PROGBITS && (section.sh_flags & flags) == SHF_ALLOC &&
		    section_has_mark(fd, &section, piece))
			return true;
	}
	return false;
}

bool mt_allocator_in_file(int fd)
{
	struct search search = { .fd = fd };
	char *piece = malloc(PIECE_BYTES);
	bool own;

	own = piece && find_tables(&search) && find_places(&search, piece) &&
	      is_defined(&search, piece);
	if (piece && !own && search.stripped)
		own = constants_have_mark(fd, piece);
	free(piece);
	return own;
}

static struct known_file *find_known(struct mt_allocator *allocator, const struct stat *st)
{
	size_t i;

	for (i = 0; i < REMEMBERED && i < allocator->count; i++) {
		struct known_file *file = &allocator->files[i];

		if (file->dev == st->st_dev && file->ino == st->st_ino &&
		    file->changed.tv_sec == st->st_ctim.tv_sec &&
		    file->changed.tv_nsec == st->st_ctim.tv_nsec)
			return file;
	}
	return NULL;
}

bool mt_allocator_is_own(struct mt_allocator *allocator, pid_t pid)
{
	struct known_file *known;
	struct stat st;
	bool own = false;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = allocator ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0) {
		known = find_known(allocator, &st);
		if (!known) {
			known = &allocator->files[allocator->count++ % REMEMBERED];
			*known = (struct known_file){ st.st_dev, st.st_ino, st.st_ctim,
						      mt_allocator_in_file(fd) };
		}
		own = known->own;
	}
	close(fd);
	return own;
}
