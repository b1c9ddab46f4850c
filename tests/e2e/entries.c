/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every entry point of the allocator once or more, each with a size of its own, so that the test
 * can look for it: success gives one event, failure none, and errno stays what it was. The exit
 * status is the line of the check that failed, modulo 256.
 */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHECK(condition)                      \
	do {                                  \
		if (!(condition))             \
			exit(__LINE__ & 255); \
	} while (0)

/* Sizes that the compiler does not see through. */
static volatile size_t most = PTRDIFF_MAX;
static volatile size_t beyond = SIZE_MAX;
static volatile size_t bad_align = 3;
static volatile size_t nothing;

static void aligned_family(void)
{
	void *block;
	void *const untouched = &block;

	for (size_t align = 8; align <= 4096; align *= 2) {
		CHECK(posix_memalign(&block, align, 20001) == 0);
		CHECK((uintptr_t)block % align == 0);
		free(block);
	}
	block = untouched;
	CHECK(posix_memalign(&block, bad_align, 20002) == EINVAL);
	CHECK(block == untouched);
	CHECK(posix_memalign(&block, 64, most - 8192) == ENOMEM);
	free(aligned_alloc(64, 20032));
	free(memalign(64, 20005));
	free(valloc(20006));
	free(pvalloc(20007));
}

static void failures(void)
{
	errno = 0;
	CHECK(!malloc(most));
	CHECK(errno == ENOMEM);
	errno = 0;
	CHECK(!calloc(beyond / 2, 3));
	CHECK(errno == ENOMEM);
	errno = 0;
	CHECK(!reallocarray(NULL, beyond / 2, 3));
	CHECK(errno == ENOMEM);
}

static void errno_is_kept(void)
{
	void *block;
	void *map;

	errno = 77;
	free(NULL);
	for (int i = 0; i < 3000; i++) {
		block = malloc(20010);
		CHECK(block && errno == 77);
		block = realloc(block, 20011);
		CHECK(block && errno == 77);
		free(block);
		CHECK(errno == 77);
	}
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED && errno == 77);
	CHECK(munmap(map, 4096) == 0 && errno == 77);
}

static void reallocs(void)
{
	void *block = realloc(NULL, 30001);
	void *moved;

	CHECK(block);
	block = realloc(block, 300002); /* moves, or becomes a mapping */
	CHECK(block);
	block = realloc(block, 30003); /* shrinks */
	CHECK(block);
	moved = realloc(block, most); /* fails: the block stays */
	CHECK(!moved && errno == ENOMEM);
	memset(block, 1, 30003);
	block = reallocarray(block, 2, 30004 / 2);
	CHECK(block);
	CHECK(!realloc(block, nothing)); /* frees, in glibc */
	CHECK(posix_memalign(&block, 256, 30005) == 0);
	block = realloc(block, 300006);
	CHECK(block);
	free(block);
	block = realloc(NULL, nothing); /* as malloc(0) */
	CHECK(block);
	free(block);
}

/* Blocks that libc takes and the caller gives back. */
static void taken_by_libc(void)
{
	const struct addrinfo numeric = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *addresses;
	struct dirent **names;
	char *line = NULL;
	size_t size = 0;
	DIR *folder;
	FILE *file;
	int count;

	CHECK(asprintf(&line, "%40000d", 1) == 40000);
	free(line);
	line = strdup("word");
	CHECK(line);
	free(line);
	line = NULL;
	file = fopen("/proc/self/status", "r");
	CHECK(file && getline(&line, &size, file) > 0);
	free(line);
	fclose(file);
	folder = opendir("/");
	CHECK(folder && readdir(folder));
	closedir(folder);
	count = scandir("/", &names, NULL, alphasort);
	CHECK(count > 0);
	while (count-- > 0)
		free(names[count]);
	free(names);
	CHECK(getaddrinfo("127.0.0.1", "80", &numeric, &addresses) == 0);
	freeaddrinfo(addresses);
}

/* The way to a thread's first buffer is another than that of all later records. */
static void *errno_in_new_thread(void *unused)
{
	void *block;

	errno = 77;
	block = malloc(20012);
	CHECK(block && errno == 77);
	free(block);
	CHECK(errno == 77);
	return unused;
}

static void new_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 10; i++) {
		CHECK(pthread_create(&thread, NULL, errno_in_new_thread, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
}

int main(void)
{
	void *block = malloc(20020);

	CHECK(block && malloc_usable_size(block) >= 20020);
	free(block);
	block = calloc(3, 20021 / 3);
	CHECK(block);
	free(block);
	aligned_family();
	failures();
	errno_is_kept();
	reallocs();
	taken_by_libc();
	new_threads();
	return 0;
}
