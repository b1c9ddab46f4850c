/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * blocks COUNT SIZE [END]: takes COUNT blocks of SIZE bytes, gives none back, and ends in the way
 * named: with exit handlers, without, by a signal, from a second thread, by exec.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long count;
static size_t size;
static volatile int *volatile nowhere;

static void take_all(void)
{
	for (long i = 0; i < count; i++) {
		char *block = malloc(size);

		if (!block)
			_exit(98);
		*block = 1;
	}
}

static void *exit_there(void *unused)
{
	exit(0);
	return unused;
}

/* The main thread's end can be seen; whoever takes it for the process's does so a moment later. */
static void wait_for_main(void)
{
	char text[256];
	ssize_t len;
	int fd;

	for (int i = 0; i < 5000; i++) {
		fd = open("/proc/self/stat", O_RDONLY);
		len = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[len > 0 ? len : 0] = 0;
		if (strstr(text, ") Z "))
			break;
		usleep(1000);
	}
	usleep(50000);
}

static void *take_there(void *unused)
{
	wait_for_main();
	take_all();
	return unused;
}

static void end_from_thread(void *(*function)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, NULL))
		_exit(97);
	pthread_exit(NULL);
}

static void end_by(const char *end)
{
	if (!strcmp(end, "exit"))
		exit(0);
	if (!strcmp(end, "_exit"))
		_exit(0);
	if (!strcmp(end, "quick_exit"))
		quick_exit(0);
	if (!strcmp(end, "exit_group"))
		syscall(SYS_exit_group, 0);
	if (!strcmp(end, "abort"))
		abort();
	if (!strcmp(end, "segv"))
		*nowhere = 0;
	if (!strcmp(end, "term"))
		raise(SIGTERM);
	if (!strcmp(end, "kill"))
		raise(SIGKILL);
	if (!strcmp(end, "thread_exit"))
		end_from_thread(exit_there);
	if (!strcmp(end, "exec"))
		execl("/bin/true", "true", (char *)NULL);
	_exit(96);
}

int main(int argc, char **argv)
{
	const char *end = argc > 3 ? argv[3] : "return";

	if (argc < 3)
		return 95;
	count = atol(argv[1]);
	size = strtoul(argv[2], NULL, 0);
	/* The worker goes on after the main thread is gone. */
	if (!strcmp(end, "pthread_exit"))
		end_from_thread(take_there);
	take_all();
	if (strcmp(end, "return"))
		end_by(end);
	return 0;
}
