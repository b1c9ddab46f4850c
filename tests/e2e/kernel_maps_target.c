// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * kernel_maps_target OUT [action [argument]]...: makes executable mappings and
 * then writes those that /proc/self/maps has of files to OUT, in the form that
 * kernel_trace's events are compared in: "start end offset dev inode path",
 * without " (deleted)". Actions: dlopen LIBRARY; map FILE; deleted FILE (mapped,
 * then removed); removed FILE (removed, then mapped); protect FILE (mapped
 * readable, then made executable); memfd NAME; thread-exec (a thread executes
 * this program again, with what follows).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void map_fd(int fd, int prot)
{
	if (mmap(NULL, 4096, prot, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		die("mmap");
	close(fd);
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

static void map_protect(const char *path)
{
	int fd = open_file(path);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED || mprotect(at, 4096, PROT_READ | PROT_EXEC))
		die("mprotect");
	close(fd);
}

static void map_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 4096))
		die("memfd_create");
	map_fd(fd, PROT_READ | PROT_EXEC);
}

static void *thread_exec(void *argument)
{
	char **argv = argument;

	execv("/proc/self/exe", argv);
	die("execv");
	return NULL;
}

static void act(char **argv, int *at)
{
	const char *action = argv[*at], *what = argv[*at + 1];
	int fd;

	if (strcmp(action, "thread-exec") == 0) {
		pthread_t thread;

		argv[*at] = argv[1];
		argv[*at - 1] = argv[0];
		if (pthread_create(&thread, NULL, thread_exec, argv + *at - 1))
			exit(1);
		pause();
	}
	if (!what) {
		fprintf(stderr, "kernel_maps_target: %s needs an argument\n", action);
		exit(1);
	}
	*at += 2;
	if (strcmp(action, "dlopen") == 0) {
		if (!dlopen(what, RTLD_NOW)) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
	} else if (strcmp(action, "map") == 0) {
		map_fd(open_file(what), PROT_READ | PROT_EXEC);
	} else if (strcmp(action, "deleted") == 0) {
		map_fd(open_file(what), PROT_READ | PROT_EXEC);
		unlink(what);
	} else if (strcmp(action, "removed") == 0) {
		fd = open_file(what);
		unlink(what);
		map_fd(fd, PROT_READ | PROT_EXEC);
	} else if (strcmp(action, "protect") == 0) {
		map_protect(what);
	} else if (strcmp(action, "memfd") == 0) {
		map_memfd(what);
	} else {
		fprintf(stderr, "kernel_maps_target: unknown action %s\n", action);
		exit(1);
	}
}

static void print_maps(const char *out_path)
{
	static const char deleted[] = " (deleted)";
	FILE *maps = fopen("/proc/self/maps", "re"), *out = fopen(out_path, "we");
	char line[8192];

	if (!maps || !out)
		die(out_path);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset, ino;
		char perms[8], dev[32];
		int path_at = 0;
		size_t len;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %31s %" SCNu64 " %n",
			   &start, &end, perms, &offset, dev, &ino, &path_at) < 6 ||
		    perms[2] != 'x' || line[path_at] != '/')
			continue;
		line[strcspn(line, "\n")] = '\0';
		len = strlen(line);
		if (len > sizeof(deleted) && strcmp(line + len - sizeof(deleted) + 1, deleted) == 0)
			line[len - sizeof(deleted) + 1] = '\0';
		fprintf(out, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %s %" PRIu64 " %s\n", start, end,
			offset, dev, ino, line + path_at);
	}
	if (fclose(out))
		die(out_path);
	fclose(maps);
}

int main(int argc, char **argv)
{
	int at = 2;

	if (argc < 2)
		return 1;
	while (at < argc)
		act(argv, &at);
	print_maps(argv[1]);
	return 0;
}
