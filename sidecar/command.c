/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/command.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#error "memtrack knows x86-64 and aarch64"
#endif

/* Scripts may name scripts as their interpreters; the kernel stops at about that many. */
#define SCRIPT_DEPTH 5
#define PHDRS_MAX    256
#define STRTAB_MAX   (4u << 20)

static bool read_at(int fd, void *buffer, size_t len, uint64_t offset)
{
	ssize_t n;

	if (offset > INT64_MAX)
		return false;
	n = pread(fd, buffer, len, (off_t)offset);
	return n >= 0 && (size_t)n == len;
}

static bool is_executable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As execvp: a name with a slash is a path, else the first executable one in PATH. */
static bool find_in_path(const char *name, char path[PATH_MAX])
{
	const char *p = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	if (!p)
		p = "/bin:/usr/bin";
	for (;;) {
		int len = (int)strcspn(p, ":");
		int n = snprintf(path, PATH_MAX, "%.*s%s%s", len, p, len ? "/" : "", name);

		if (n < PATH_MAX && is_executable(path))
			return true;
		p += len;
		if (!*p++)
			return false;
	}
}

static bool changes_ids(int fd, uid_t uid, gid_t gid)
{
	struct stat st;
	char caps[64];

	if (fstat(fd, &st) < 0)
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != uid)
		return true;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != gid)
		return true;
	/* Root has them all already. */
	return uid != 0 && fgetxattr(fd, "security.capability", caps, sizeof(caps)) > 0;
}

struct image {
	int fd;
	Elf64_Ehdr header;
	Elf64_Phdr phdrs[PHDRS_MAX];
};

static const Elf64_Phdr *find_phdr(const struct image *image, uint32_t type)
{
	unsigned i;

	for (i = 0; i < image->header.e_phnum; i++) {
		if (image->phdrs[i].p_type == type)
			return &image->phdrs[i];
	}
	return NULL;
}

/* File offset of an address of the image; false when no segment holds it. */
static bool offset_of(const struct image *image, uint64_t addr, uint64_t *ret_offset)
{
	unsigned i;

	for (i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *p = &image->phdrs[i];

		if (p->p_type == PT_LOAD && addr >= p->p_vaddr && addr - p->p_vaddr < p->p_filesz) {
			*ret_offset = p->p_offset + (addr - p->p_vaddr);
			return true;
		}
	}
	return false;
}

/*
 * Every sanitizer's runtime is met through a symbol or a library name, and both stand in the string
 * table of the dynamic section, so that one search finds shared and static runtimes.
 */
static bool has_sanitizer(const char *strings, size_t len, char detail[PATH_MAX])
{
	static const char *const names[] = { "__asan_init", "__hwasan_init", "__tsan_init",
					     "__msan_init", "__lsan_init" };
	static const char *const words[] = { "AddressSanitizer", "HWAddressSanitizer",
					     "ThreadSanitizer", "MemorySanitizer",
					     "LeakSanitizer" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (memmem(strings, len, names[i], strlen(names[i]) + 1)) {
			snprintf(detail, PATH_MAX, "%s", words[i]);
			return true;
		}
	}
	return false;
}

static bool needs_sanitizer(const struct image *image, char detail[PATH_MAX])
{
	const Elf64_Phdr *dynamic = find_phdr(image, PT_DYNAMIC);
	uint64_t addr = 0, len = 0, offset;
	bool found = false;
	unsigned i, count;
	char *strings;
	Elf64_Dyn dyn;

	if (!dynamic)
		return false;
	count = dynamic->p_filesz / sizeof(dyn) > 4096
			? 4096
			: (unsigned)(dynamic->p_filesz / sizeof(dyn));
	for (i = 0; i < count; i++) {
		if (!read_at(image->fd, &dyn, sizeof(dyn), dynamic->p_offset + i * sizeof(dyn)) ||
		    dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_STRTAB)
			addr = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_STRSZ)
			len = dyn.d_un.d_val;
	}
	if (!addr || !len || len > STRTAB_MAX || !offset_of(image, addr, &offset))
		return false;
	strings = malloc(len);
	if (!strings)
		return false;
	if (read_at(image->fd, strings, len, offset))
		found = has_sanitizer(strings, len, detail);
	free(strings);
	return found;
}

/* glibc's loaders are ld-linux*.so.* and, on some machines, ld64.so.*. */
static bool is_own_libc(const char *interpreter)
{
	const char *base = strrchr(interpreter, '/');

	base = base ? base + 1 : interpreter;
	return strncmp(base, "ld-linux", 8) == 0 || strncmp(base, "ld64.so", 7) == 0;
}

static enum mt_command_kind check_elf(struct image *image, struct mt_command *command)
{
	const Elf64_Phdr *interp;
	size_t len;

	if (image->header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    image->header.e_ident[EI_DATA] != ELFDATA2LSB || image->header.e_machine != OWN_MACHINE)
		return MT_COMMAND_FOREIGN;
	if (image->header.e_phentsize != sizeof(Elf64_Phdr) || image->header.e_phnum > PHDRS_MAX ||
	    !read_at(image->fd, image->phdrs, image->header.e_phnum * sizeof(Elf64_Phdr),
		     image->header.e_phoff))
		return MT_COMMAND_UNKNOWN;
	interp = find_phdr(image, PT_INTERP);
	if (!interp) {
		/* The loader itself, called as a command, has none either. */
		const char *base = strrchr(command->path, '/');

		return is_own_libc(base ? base : command->path) ? MT_COMMAND_UNKNOWN
								: MT_COMMAND_STATIC;
	}
	len = interp->p_filesz < PATH_MAX ? (size_t)interp->p_filesz : PATH_MAX - 1;
	if (!read_at(image->fd, command->detail, len, interp->p_offset))
		return MT_COMMAND_UNKNOWN;
	command->detail[len] = 0;
	if (!is_own_libc(command->detail))
		return MT_COMMAND_LIBC;
	if (needs_sanitizer(image, command->detail))
		return MT_COMMAND_SANITIZER;
	return MT_COMMAND_TRACKABLE;
}

/* "#! /path/to/interpreter arg": copies the path. */
static bool script_interpreter(const char *start, size_t len, char path[PATH_MAX])
{
	char line[257];
	char *p;

	if (len < 2 || start[0] != '#' || start[1] != '!')
		return false;
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	memcpy(line, start, len);
	line[len] = 0;
	line[strcspn(line, "\n")] = 0;
	p = line + 2;
	p += strspn(p, " \t");
	p[strcspn(p, " \t")] = 0;
	return *p && snprintf(path, PATH_MAX, "%s", p) < PATH_MAX;
}

static enum mt_command_kind check_fd(int fd, uid_t uid, gid_t gid, struct mt_command *command,
				     bool *ret_again)
{
	struct image image;
	char start[256];
	ssize_t n;

	n = pread(fd, start, sizeof(start), 0);
	if (n <= 0)
		return MT_COMMAND_UNKNOWN;
	/* Scripts run without their set-ID bits. */
	if (script_interpreter(start, (size_t)n, command->path)) {
		*ret_again = true;
		return MT_COMMAND_UNKNOWN;
	}
	if (n < SELFMAG || memcmp(start, ELFMAG, SELFMAG) != 0)
		return MT_COMMAND_UNKNOWN;
	if (changes_ids(fd, uid, gid))
		return MT_COMMAND_SET_ID;
	memset(&image, 0, sizeof(image));
	image.fd = fd;
	memcpy(&image.header, start, sizeof(image.header));
	return (size_t)n < sizeof(image.header) ? MT_COMMAND_UNKNOWN : check_elf(&image, command);
}

void mt_command_check(const char *name, uid_t uid, gid_t gid, struct mt_command *ret_command)
{
	bool again = true;
	int depth, fd;

	memset(ret_command, 0, sizeof(*ret_command));
	ret_command->kind = MT_COMMAND_UNKNOWN;
	if (!find_in_path(name, ret_command->path))
		return;
	for (depth = 0; again && depth < SCRIPT_DEPTH; depth++) {
		again = false;
		fd = open(ret_command->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			return;
		ret_command->kind = check_fd(fd, uid, gid, ret_command, &again);
		close(fd);
	}
}

const char *mt_command_reason(enum mt_command_kind kind)
{
	switch (kind) {
	case MT_COMMAND_TRACKABLE:
	case MT_COMMAND_UNKNOWN:
		return NULL;
	case MT_COMMAND_STATIC:
		return "is statically linked";
	case MT_COMMAND_LIBC:
		return "uses another C library";
	case MT_COMMAND_FOREIGN:
		return "is built for another architecture";
	case MT_COMMAND_SET_ID:
		return "changes its user, group or capabilities when it starts";
	case MT_COMMAND_SANITIZER:
		return "runs with a sanitizer, whose runtime owns malloc";
	}
	return NULL;
}

bool mt_command_refuses_preload(enum mt_command_kind kind)
{
	return kind == MT_COMMAND_LIBC || kind == MT_COMMAND_FOREIGN || kind == MT_COMMAND_SET_ID ||
	       kind == MT_COMMAND_SANITIZER;
}
