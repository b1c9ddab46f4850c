/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * closer FILE [daemon]: with `daemon` it becomes one first. Closes every descriptor, opens FILE as
 * the first free one, takes blocks from several threads (which needs new buffers), and checks that
 * FILE holds what it wrote. Sizes 444 and 445.
 */
#define MARKER "the program's own words\n"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range /* headers that are older than the kernel */
#define SYS_close_range 436
#endif

#define THREADS 4
#define BLOCKS	50000

static void *take(void *unused)
{
	for (int i = 0; i < BLOCKS; i++)
		free(malloc(444));
	return unused;
}

static void close_all(void)
{
	if (syscall(SYS_close_range, 3U, ~0U, 0U))
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char back[sizeof(MARKER)];
	int fd;

	if (argc < 2)
		return 95;
	if (argc > 2 && daemon(0, 1)) /* its output stays, for who waits for its end */
		return 96;
	close_all();
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd != 3)
		return 1;
	for (int number = 4; number < 256; number++)
		if (dup2(fd, number) != number)
			return 2;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, take, NULL))
			return 97;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (write(fd, MARKER, strlen(MARKER)) != (ssize_t)strlen(MARKER))
		return 3;
	if (lseek(fd, 0, SEEK_END) != (off_t)strlen(MARKER))
		return 4;
	if (pread(fd, back, sizeof(back), 0) != (ssize_t)strlen(MARKER) ||
	    memcmp(back, MARKER, strlen(MARKER)))
		return 5;
	for (int number = 4; number < 256; number++)
		if (fcntl(number, F_GETFD) < 0)
			return 6;
	close_all();
	for (int i = 0; i < 1000; i++)
		free(malloc(445));
	return 0;
}
