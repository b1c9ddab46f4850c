/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * places ACTION...: says where its code comes from, at a time, for comparison with the artifact.
 *   open FILE        loads a library and takes 1000 blocks of 4321 bytes through its take()
 *   close            unloads the one that was loaded last
 *   where            a line for each library that is loaded, for the program and for the C library
 *   remove FILE      replace FROM TO (a rename)
 *   fork, rawfork    child and parent both go on with what follows, the child first
 *   exec PROGRAM     in this place, with what follows
 * A line: pid, CLOCK_MONOTONIC in ns, address, then offset, device, inode and path of the mapping
 * that /proc/self/maps has there, without " (deleted)", and the first bytes of code.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIBRARIES_MAX 16
#define BYTES_SHOWN   16

static void *libraries[LIBRARIES_MAX];
static int count;

static void fail(const char *what)
{
	fprintf(stderr, "places: %s: %s\n", what, dlerror());
	exit(1);
}

static void print_line(uint64_t address, uint64_t offset, const char *device, uint64_t inode,
		       const char *path)
{
	const unsigned char *code = (const unsigned char *)(uintptr_t)address;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%d %lld%09ld %" PRIu64 " %" PRIu64 " %s %" PRIu64 " ", getpid(),
	       (long long)now.tv_sec, now.tv_nsec, address, offset, device, inode);
	for (int i = 0; i < BYTES_SHOWN; i++)
		printf("%02x", code[i]);
	printf(" %s\n", path);
}

static void say_where(void *function)
{
	static const char deleted[] = " (deleted)";
	uint64_t address = (uint64_t)(uintptr_t)function, from, to, offset, inode;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], device[32];
	int path_at;

	while (maps && fgets(line, sizeof(line), maps)) {
		char *end;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %31s %" SCNu64 " %n",
			   &from, &to, &offset, device, &inode, &path_at) < 5 ||
		    address < from || address >= to)
			continue;
		line[strcspn(line, "\n")] = '\0';
		end = line + strlen(line) - strlen(deleted);
		if (end > line + path_at && !strcmp(end, deleted))
			*end = '\0';
		print_line(address, offset, device, inode, line + path_at);
		break;
	}
	if (maps)
		fclose(maps);
	fflush(stdout);
}

static void *(*find_take(void *library))(size_t)
{
	void *(*take)(size_t);

	*(void **)&take = dlsym(library, "take");
	if (!take)
		fail("take");
	return take;
}

static void load(const char *file)
{
	void *library = count < LIBRARIES_MAX ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
	void *(*take)(size_t);

	if (!library)
		fail(file);
	libraries[count++] = library;
	take = find_take(library);
	for (int i = 0; i < 1000; i++)
		free(take(4321));
	say_where(*(void **)&take);
}

static void say_all(void)
{
	void *(*function)(size_t) = malloc;

	for (int i = 0; i < count; i++) {
		void *(*take)(size_t) = find_take(libraries[i]);

		free(take(4321));
		say_where(*(void **)&take);
	}
	say_where((void *)(uintptr_t)say_all);
	say_where(dlsym(RTLD_DEFAULT, "qsort"));
	say_where(*(void **)&function);
}

static void split(int raw)
{
	long pid = raw ? syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L) : fork();
	int status;

	if (pid < 0)
		fail("fork");
	if (pid > 0 && (waitpid((pid_t)pid, &status, 0) != pid || status))
		exit(2);
}

int main(int argc, char **argv)
{
	for (char **at = argv + 1; at < argv + argc; at++) {
		if (!strcmp(*at, "open"))
			load(*++at);
		else if (!strcmp(*at, "close") && count)
			dlclose(libraries[--count]);
		else if (!strcmp(*at, "where"))
			say_all();
		else if (!strcmp(*at, "fork") || !strcmp(*at, "rawfork"))
			split(**at == 'r');
		else if (!strcmp(*at, "remove"))
			unlink(*++at);
		else if (!strcmp(*at, "replace") && rename(at[1], at[2]) == 0)
			at += 2;
		else if (!strcmp(*at, "exec"))
			return execv(at[1], at + 1);
		else
			fail(*at);
	}
	return 0;
}
