/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * twice PAIRS HALF GO: takes and frees so many blocks of 1111 bytes, makes the file HALF, waits
 * until there is a file GO, and does the same with blocks of 2222 bytes.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void churn(long pairs, size_t size)
{
	while (pairs-- > 0) {
		void *block = malloc(size);

		if (!block)
			abort();
		free(block);
	}
}

int main(int argc, char **argv)
{
	const struct timespec nap = { .tv_nsec = 5000000 };
	int fd;

	if (argc != 4)
		return 95;
	churn(atol(argv[1]), 1111);
	fd = open(argv[2], O_WRONLY | O_CREAT, 0600);
	if (fd < 0 || close(fd))
		return 96;
	while (access(argv[3], F_OK))
		nanosleep(&nap, NULL);
	churn(atol(argv[1]), 2222);
	return 0;
}
