/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The look at a program's file: real ones, and headers that lie. */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/command.h"

static char path[] = "/tmp/mt-command-XXXXXX";

static void write_file(const void *bytes, size_t len)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	fchmod(fd, 0755);
	close(fd);
}

static void remove_file(void)
{
	unlink(path);
}

TestSuite(command, .fini = remove_file);

static struct mt_command check(const char *name)
{
	struct mt_command command;

	mt_command_check(name, getuid(), getgid(), &command);
	return command;
}

/* Our own header, so that class and machine fit. */
static Elf64_Ehdr own_header(void)
{
	Elf64_Ehdr header;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(read(fd, &header, sizeof(header)), (ssize_t)sizeof(header));
	close(fd);
	return header;
}

/* A program that wants glibc's loader, of the machine that we run on. */
static void write_program(void)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr interp;
		char name[32];
	} file = { .header = own_header(), .name = "/lib/ld-linux.so.2" };

	file.header.e_phoff = sizeof(file.header);
	file.header.e_phnum = 1;
	file.interp.p_type = PT_INTERP;
	file.interp.p_offset = sizeof(file.header) + sizeof(file.interp);
	file.interp.p_filesz = sizeof(file.name);
	write_file(&file, sizeof(file));
}

Test(command, a_program_is_found_in_the_path)
{
	struct mt_command command;

	write_program();
	setenv("PATH", "/no/such/folder:/tmp:/usr", 1);
	command = check(strrchr(path, '/') + 1);
	cr_assert_eq(command.kind, MT_COMMAND_TRACKABLE);
	cr_assert_str_eq(command.path, path);
}

Test(command, what_is_not_there_is_not_known)
{
	cr_assert_eq(check("/no/such/file").kind, MT_COMMAND_UNKNOWN);
	cr_assert_eq(check("no-such-command-at-all").kind, MT_COMMAND_UNKNOWN);
	cr_assert_eq(check("/").kind, MT_COMMAND_UNKNOWN);
}

Test(command, a_script_is_its_interpreter)
{
	char program[sizeof(path)], script[64];
	struct mt_command command;

	write_program();
	strcpy(program, path);
	strcpy(path, "/tmp/mt-command-XXXXXX");
	write_file(script, (size_t)snprintf(script, sizeof(script), "#! %s -e\nexit 0\n", program));
	command = check(path);
	unlink(program);
	cr_assert_eq(command.kind, MT_COMMAND_TRACKABLE);
	cr_assert_str_eq(command.path, program);
}

Test(command, a_script_that_is_its_own_interpreter_comes_to_an_end)
{
	char script[64];
	int fd = mkstemp(path);

	dprintf(fd, "#!%s\n", path);
	fchmod(fd, 0755);
	close(fd);
	snprintf(script, sizeof(script), "%s", path);
	cr_assert_eq(check(script).kind, MT_COMMAND_UNKNOWN);
}

Test(command, another_machine_is_foreign)
{
	Elf64_Ehdr header = own_header();

	header.e_machine = EM_SPARCV9;
	write_file(&header, sizeof(header));
	cr_assert_eq(check(path).kind, MT_COMMAND_FOREIGN);
}

Test(command, without_an_interpreter_it_is_static)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr load;
	} file = { .header = own_header() };

	file.header.e_phoff = sizeof(file.header);
	file.header.e_phnum = 1;
	file.load.p_type = PT_LOAD;
	write_file(&file, sizeof(file));
	cr_assert_eq(check(path).kind, MT_COMMAND_STATIC);
}

Test(command, another_libc_is_named)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr interp;
		char name[32];
	} file = { .header = own_header(), .name = "/lib/ld-musl-x86_64.so.1" };
	struct mt_command command;

	file.header.e_phoff = sizeof(file.header);
	file.header.e_phnum = 1;
	file.interp.p_type = PT_INTERP;
	file.interp.p_offset = sizeof(file.header) + sizeof(file.interp);
	file.interp.p_filesz = sizeof(file.name);
	write_file(&file, sizeof(file));
	command = check(path);
	cr_assert_eq(command.kind, MT_COMMAND_LIBC);
	cr_assert_str_eq(command.detail, file.name);
	cr_assert(mt_command_refuses_preload(command.kind));
}

/* A dynamic section whose entries and string table lie where `addr` and `len` say. */
static enum mt_command_kind check_dynamic(uint64_t addr, uint64_t len, const char *strings)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr phdrs[3];
		Elf64_Dyn dyns[3];
		char name[32];
		char strings[64];
	} file = { .header = own_header(), .name = "/lib64/ld-linux-x86-64.so.2" };

	file.header.e_phoff = sizeof(file.header);
	file.header.e_phnum = 3;
	file.phdrs[0].p_type = PT_INTERP;
	file.phdrs[0].p_offset = (uint64_t)(file.name - (char *)&file);
	file.phdrs[0].p_filesz = sizeof(file.name);
	file.phdrs[1].p_type = PT_DYNAMIC;
	file.phdrs[1].p_offset = (uint64_t)((char *)file.dyns - (char *)&file);
	file.phdrs[1].p_filesz = sizeof(file.dyns);
	file.phdrs[2].p_type = PT_LOAD;
	file.phdrs[2].p_offset = (uint64_t)(file.strings - (char *)&file);
	file.phdrs[2].p_vaddr = 0x1000;
	file.phdrs[2].p_filesz = sizeof(file.strings);
	file.dyns[0].d_tag = DT_STRTAB;
	file.dyns[0].d_un.d_ptr = addr;
	file.dyns[1].d_tag = DT_STRSZ;
	file.dyns[1].d_un.d_val = len;
	snprintf(file.strings + 1, sizeof(file.strings) - 1, "%s", strings);
	write_file(&file, sizeof(file));
	return check(path).kind;
}

Test(command, a_sanitizer_is_seen)
{
	cr_assert_eq(check_dynamic(0x1000, 64, "__asan_init"), MT_COMMAND_SANITIZER);
}

Test(command, a_name_that_only_begins_so_is_none)
{
	cr_assert_eq(check_dynamic(0x1000, 64, "__asan_initial"), MT_COMMAND_TRACKABLE);
}

Test(command, string_tables_that_are_not_there)
{
	cr_assert_eq(check_dynamic(0xfffffffffffff000, 64, "__asan_init"), MT_COMMAND_TRACKABLE);
	remove_file();
	strcpy(path, "/tmp/mt-command-XXXXXX");
	cr_assert_eq(check_dynamic(0x1000, UINT64_MAX, "__asan_init"), MT_COMMAND_TRACKABLE);
}

Test(command, a_header_that_lies_is_not_followed)
{
	Elf64_Ehdr header = own_header();

	header.e_phoff = UINT64_MAX - 8;
	header.e_phnum = 65535;
	write_file(&header, sizeof(header));
	cr_assert_eq(check(path).kind, MT_COMMAND_UNKNOWN);
	remove_file();
	strcpy(path, "/tmp/mt-command-XXXXXX");
	write_file(&header, SELFMAG + 2);
	cr_assert_eq(check(path).kind, MT_COMMAND_UNKNOWN);
}
