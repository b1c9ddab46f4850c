/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * forkthreads FORKS: forks, by turns from main, from a thread that has just been made, and by
 * popen(), while other threads take and free blocks and come and go. Each child takes 100 blocks,
 * starts one thread and ends; one that hangs is killed by its alarm. Exit status 1 when a child did
 * not end by itself.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 6

static int stop;
static int storm, begun; /* main wants it; a worker is at it */

/* Rests, or there would be more events than a test can look at. But not when a fork is on. */
static void *churn(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 100; i++)
			free(malloc(100));
		for (int i = 0; i < 2000 && __atomic_load_n(&storm, __ATOMIC_ACQUIRE); i++) {
			__atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
			free(malloc(100));
		}
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

static int fork_and_wait(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		be_child();
	__atomic_store_n(&storm, 0, __ATOMIC_RELEASE);
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static void *fork_there(void *ret_bad)
{
	*(int *)ret_bad = fork_and_wait();
	return NULL;
}

static int fork_in_new_thread(void)
{
	pthread_t thread;
	int bad = 1;

	if (pthread_create(&thread, NULL, fork_there, &bad))
		return 1;
	pthread_join(thread, NULL);
	return bad;
}

static int ask_shell(void)
{
	char line[16];
	FILE *pipe = popen("echo said", "r");

	return !pipe || !fgets(line, sizeof(line), pipe) || pclose(pipe);
}

static void wait_for_storm(void)
{
	__atomic_store_n(&begun, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&storm, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
		sched_yield();
}

int main(int argc, char **argv)
{
	pthread_t threads[WORKERS];
	int forks = argc > 1 ? atoi(argv[1]) : 0;
	int bad = 0;

	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&threads[i], NULL, i % 3 ? churn : start_threads, NULL))
			return 97;
	for (int i = 0; i < forks; i++) {
		if (i % 8 == 0)
			wait_for_storm();
		bad += i % 2 ? fork_in_new_thread() : fork_and_wait();
		if (i % 10 == 0)
			bad += ask_shell();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	return bad != 0;
}
