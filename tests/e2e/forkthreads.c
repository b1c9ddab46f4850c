/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * forkthreads FORKS: forks while other threads take and free blocks and come and go. Each child
 * takes 100 blocks, starts one thread and ends; one that hangs is killed by its alarm. Exit status
 * 1 when a child did not end by itself.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 6

static int stop;

static void *churn(void *unused)
{
	/* Now and then a rest, or there would be more events than a test can look at. */
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 100; i++)
			free(malloc(100));
		usleep(500);
	}
	return unused;
}

static void *take_one(void *unused)
{
	free(malloc(200));
	return unused;
}

static void *start_threads(void *unused)
{
	pthread_t thread;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		if (pthread_create(&thread, NULL, take_one, NULL))
			abort();
		pthread_join(thread, NULL);
	}
	return unused;
}

static void be_child(void)
{
	pthread_t thread;

	alarm(10);
	for (int i = 0; i < 100; i++)
		free(malloc(777));
	if (pthread_create(&thread, NULL, take_one, NULL))
		_exit(97);
	pthread_join(thread, NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t threads[WORKERS];
	int forks = argc > 1 ? atoi(argv[1]) : 0;
	int bad = 0;
	int status;

	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&threads[i], NULL, i % 3 ? churn : start_threads, NULL))
			return 97;
	for (int i = 0; i < forks; i++) {
		pid_t pid = fork();

		if (pid == 0)
			be_child();
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			bad++;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	return bad != 0;
}
