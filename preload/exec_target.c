/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/exec_target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/raw_syscall.h"
#include "common/sanitizer.h"
#include "preload/settings.h"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#else
#define OUR_MACHINE EM_AARCH64
#endif

#define PARTS_MAX     32
#define SCRIPTS_MAX   4 /* as the kernel */
#define LINE_BYTES    256
#define DYNAMIC_PIECE 32
#define NEEDED_MAX    64
#define DEFAULT_PATH  "/bin:/usr/bin"

struct image {
	int fd;
	uint32_t part_count;
	Elf64_Phdr parts[PARTS_MAX];
};

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return mt_syscall4(SYS_pread64, fd, (long)to, (long)bytes, (long)offset) == (long)bytes;
}

static const Elf64_Phdr *find_part(const struct image *image, uint32_t type)
{
	uint32_t i;

	for (i = 0; i < image->part_count; i++) {
		if (image->parts[i].p_type == type)
			return &image->parts[i];
	}
	return NULL;
}

/* Where in the file an address of the image comes from; 0 when from nowhere. */
static uint64_t file_offset(const struct image *image, uint64_t address)
{
	uint32_t i;

	for (i = 0; i < image->part_count; i++) {
		const Elf64_Phdr *part = &image->parts[i];

		if (part->p_type == PT_LOAD && address - part->p_vaddr < part->p_filesz)
			return part->p_offset + (address - part->p_vaddr);
	}
	return 0;
}

/* Collects the offsets of needed names, and the address of the strings that they are in. */
static uint32_t read_dynamic(const struct image *image, const Elf64_Phdr *part, uint64_t *needed,
			     uint64_t *ret_strings)
{
	Elf64_Dyn piece[DYNAMIC_PIECE];
	uint64_t at = 0;
	uint32_t count = 0;
	size_t i;

	*ret_strings = 0;
	while (at + sizeof(piece[0]) <= part->p_filesz) {
		uint64_t bytes =
			part->p_filesz - at < sizeof(piece) ? part->p_filesz - at : sizeof(piece);

		bytes -= bytes % sizeof(piece[0]);
		if (!read_at(image->fd, piece, bytes, part->p_offset + at))
			return 0;
		for (i = 0; i < bytes / sizeof(piece[0]); i++) {
			if (piece[i].d_tag == DT_NULL)
				return count;
			if (piece[i].d_tag == DT_STRTAB)
				*ret_strings = piece[i].d_un.d_ptr;
			if (piece[i].d_tag == DT_NEEDED && count < NEEDED_MAX)
				needed[count++] = piece[i].d_un.d_val;
		}
		at += bytes;
	}
	return count;
}

static bool is_sanitized(const struct image *image)
{
	const Elf64_Phdr *dynamic = find_part(image, PT_DYNAMIC);
	uint64_t needed[NEEDED_MAX];
	uint64_t strings, offset;
	uint32_t count, i;
	char name[16];

	if (dynamic == NULL)
		return false;
	count = read_dynamic(image, dynamic, needed, &strings);
	offset = file_offset(image, strings);
	for (i = 0; i < count && offset != 0; i++) {
		/* A name shorter than this has others behind it, or the end of its part. */
		if (read_at(image->fd, name, sizeof(name) - 1, offset + needed[i])) {
			name[sizeof(name) - 1] = '\0';
			if (mt_sanitizer_is(name))
				return true;
		}
	}
	return false;
}

/* The interpreter of another C library could not load us. */
static bool has_foreign_loader(const struct image *image, const Elf64_Phdr *part)
{
	char path[64] = "";
	size_t bytes = part->p_filesz < sizeof(path) - 1 ? part->p_filesz : sizeof(path) - 1;

	return read_at(image->fd, path, bytes, part->p_offset) && strstr(path, "ld-musl") != NULL;
}

static enum mt_target elf_target(int fd, const Elf64_Ehdr *header)
{
	struct image image = { .fd = fd };
	const Elf64_Phdr *loader;

	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != OUR_MACHINE)
		return MT_TARGET_UNFIT;
	if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > PARTS_MAX ||
	    !read_at(fd, image.parts, header->e_phnum * sizeof(Elf64_Phdr), header->e_phoff))
		return MT_TARGET_ORDINARY;
	image.part_count = header->e_phnum;
	loader = find_part(&image, PT_INTERP);
	if (loader == NULL)
		return MT_TARGET_STATIC;
	if (has_foreign_loader(&image, loader) || is_sanitized(&image))
		return MT_TARGET_UNFIT;
	return MT_TARGET_ORDINARY;
}

/* Images that the kernel starts with more rights: ld.so then refuses us, and says so. */
static bool is_privileged(int fd)
{
	struct stat status;
	long user = mt_syscall0(SYS_getuid);

	if (mt_syscall2(SYS_fstat, fd, (long)&status) != 0)
		return false;
	if ((status.st_mode & S_ISUID) != 0 && (long)status.st_uid != user)
		return true;
	if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    (long)status.st_gid != mt_syscall0(SYS_getgid))
		return true;
	return user != 0 && mt_syscall4(SYS_fgetxattr, fd, (long)"security.capability", 0, 0) > 0;
}

/* The interpreter in a script's first line; false when there is none that fits. */
static bool read_interpreter(int fd, char path[LINE_BYTES])
{
	char line[LINE_BYTES];
	long len = mt_syscall4(SYS_pread64, fd, (long)line, LINE_BYTES - 1, 0);
	size_t start, bytes;

	if (len < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[len] = '\0';
	start = 2 + strspn(line + 2, " \t");
	bytes = strcspn(line + start, " \t\r\n");
	if (bytes == 0 || start + bytes == (size_t)len)
		return false;
	memcpy(path, line + start, bytes);
	path[bytes] = '\0';
	return true;
}

static enum mt_target target_of(int fd, int scripts)
{
	char path[LINE_BYTES];
	Elf64_Ehdr header;

	if (is_privileged(fd))
		return MT_TARGET_UNFIT;
	if (read_at(fd, &header, sizeof(header), 0) && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
		return elf_target(fd, &header);
	if (scripts < SCRIPTS_MAX && read_interpreter(fd, path)) {
		long interpreter = mt_syscall4(SYS_openat, AT_FDCWD, (long)path,
					       O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
		enum mt_target target = MT_TARGET_ORDINARY;

		if (interpreter >= 0) {
			target = target_of((int)interpreter, scripts + 1);
			(void)mt_syscall1(SYS_close, interpreter); /* only read from */
		}
		return target;
	}
	return MT_TARGET_ORDINARY;
}

enum mt_target mt_exec_target_fd(int fd)
{
	return target_of(fd, 0);
}

/* Returns 0 and the target, or a negative errno. */
static long try_file(int directory, const char *path, enum mt_target *ret_target)
{
	long fd = mt_syscall4(SYS_openat, directory, (long)path,
			      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return fd;
	*ret_target = target_of((int)fd, 0);
	(void)mt_syscall1(SYS_close, fd); /* only read from */
	return 0;
}

enum mt_target mt_exec_target_at(int directory, const char *path)
{
	enum mt_target target = MT_TARGET_ORDINARY;

	(void)try_file(directory, path, &target); /* on failure it stays ordinary */
	return target;
}

enum mt_target mt_exec_target_search(const char *name)
{
	enum mt_target target = MT_TARGET_ORDINARY;
	const char *place = mt_settings_get(environ, "PATH");
	size_t name_bytes = strlen(name) + 1;
	char path[PATH_MAX];
	size_t len;

	if (strchr(name, '/') != NULL)
		return mt_exec_target_at(AT_FDCWD, name);
	if (place == NULL)
		place = DEFAULT_PATH;
	for (;; place += len + 1) {
		len = strcspn(place, ":");
		if (len + 1 + name_bytes <= sizeof(path)) {
			memcpy(path, place, len);
			path[len] = '/';
			/* An empty place is the current directory. */
			memcpy(path + (len != 0 ? len + 1 : 0), name, name_bytes);
			if (mt_syscall4(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0) == 0 &&
			    try_file(AT_FDCWD, path, &target) == 0)
				return target;
		}
		if (place[len] == '\0')
			return target;
	}
}
