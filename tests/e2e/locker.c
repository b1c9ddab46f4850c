/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * locker FLAGS: mlockall with the letters' flags (c: current, f: future, o: on fault). Prints which
 * parts of its memory are there then: of a mapping made before the call, of one made after it, and
 * how many KiB of shared memory it has touched. 77: it may not lock.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGES 512
#define BYTES (PAGES * 4096UL)

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

static char *take(void)
{
	char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		exit(2);
	return map;
}

static const char *presence(char *map)
{
	unsigned char there[PAGES];
	int i, count = 0;

	if (mincore(map, BYTES, there))
		exit(3);
	for (i = 0; i < PAGES; i++)
		count += there[i] & 1;
	return count == PAGES ? "all" : count == 0 ? "none" : "some";
}

static long status_kib(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kib = strtol(line + strlen(name), NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

int main(int argc, char **argv)
{
	const char *letters = argc > 1 ? argv[1] : "c";
	int flags = (strchr(letters, 'c') ? MCL_CURRENT : 0) |
		    (strchr(letters, 'f') ? MCL_FUTURE : 0) |
		    (strchr(letters, 'o') ? MCL_ONFAULT : 0);
	char *before = take(), *after;
	void *block = malloc(60001);

	errno = 12345;
	if (mlockall(flags))
		return errno == EPERM || errno == ENOMEM ? 77 : 4;
	if (errno != 12345)
		return 5;
	after = take();
	printf("before %s after %s\n", presence(before), presence(after));
	fprintf(stderr, "%ld %ld\n", status_kib("RssShmem:"), status_kib("VmLck:"));
	free(block);
	return 0;
}
