// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * kernel_actions ACTION [N]: what the tests of kernel events follow.
 *   forks N         N children one after the other, each gone at once
 *   storm N         the same from two processes, without waiting for each child
 *   vfork           vfork and exec of /bin/true
 *   spawn           posix_spawn of /bin/true
 *   threads N       N threads at the same time, then exit 3
 *   thread-forks    a thread that is not the first has a child
 *   leader-leaves   the first thread ends, another ends the process with 5
 *   thread-races N  N processes of which two threads end at the same moment
 *   crash           SIGSEGV
 *   nested          a child in a new PID namespace, which has a child and a thread
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *const true_argv[] = { (char *)(uintptr_t) "/bin/true", NULL };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void forks(int count)
{
	int i;

	for (i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(i & 0x7f);
		if (pid < 0)
			die("fork");
		waitpid(pid, NULL, 0);
	}
}

static void storm(int count)
{
	pid_t half = fork();
	int i;

	if (half < 0)
		die("fork");
	signal(SIGCHLD, SIG_IGN);
	for (i = 0; i < count / 2; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0)
			i--; /* too many at a time: again */
	}
	if (half == 0)
		_exit(0);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void do_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execv(true_argv[0], true_argv);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

static void do_spawn(void)
{
	char *const env[] = { (char *)(uintptr_t) "A=b", NULL };
	pid_t pid;

	if (posix_spawn(&pid, true_argv[0], NULL, NULL, true_argv, env))
		die("posix_spawn");
	waitpid(pid, NULL, 0);
}

static pthread_barrier_t barrier;

static void *wait_and_end(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void threads(int count)
{
	pthread_t thread[64];
	int i;

	if (count > 64)
		count = 64;
	pthread_barrier_init(&barrier, NULL, (unsigned int)count + 1);
	for (i = 0; i < count; i++)
		if (pthread_create(&thread[i], NULL, wait_and_end, NULL))
			die("pthread_create");
	pthread_barrier_wait(&barrier);
	for (i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	exit(3);
}

static void *join_and_exit(void *leader)
{
	pthread_join(*(pthread_t *)leader, NULL);
	exit(5);
}

static void leader_leaves(void)
{
	static pthread_t self;
	pthread_t thread;

	self = pthread_self();
	if (pthread_create(&thread, NULL, join_and_exit, &self))
		die("pthread_create");
	pthread_exit(NULL);
}

/* Ends its thread alone, and so at the same time as the other one. */
static void *end_alone(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&barrier);
	syscall(SYS_exit, 0);
	return NULL;
}

static void thread_races(int count)
{
	int i;

	for (i = 0; i < count; i++) {
		pid_t pid = fork();
		pthread_t thread;

		if (pid == 0) {
			pthread_barrier_init(&barrier, NULL, 2);
			if (pthread_create(&thread, NULL, end_alone, NULL))
				_exit(1);
			end_alone(NULL);
		}
		waitpid(pid, NULL, 0);
	}
}

static void *fork_once(void *unused)
{
	forks(1);
	return unused;
}

static void thread_forks(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fork_once, NULL))
		die("pthread_create");
	pthread_join(thread, NULL);
}

static void nested(void)
{
	pthread_t thread;
	pid_t pid;

	if (unshare(CLONE_NEWPID)) {
		perror("unshare");
		exit(77);
	}
	pid = fork();
	if (pid == 0) {
		forks(1);
		pthread_barrier_init(&barrier, NULL, 2);
		if (pthread_create(&thread, NULL, wait_and_end, NULL))
			die("pthread_create");
		pthread_barrier_wait(&barrier);
		pthread_join(thread, NULL);
		exit(getpid());
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = { 0, 0 };
	const char *action = argc > 1 ? argv[1] : "";
	int count = argc > 2 ? atoi(argv[2]) : 1;

	if (strcmp(action, "forks") == 0) {
		forks(count);
	} else if (strcmp(action, "storm") == 0) {
		storm(count);
	} else if (strcmp(action, "vfork") == 0) {
		do_vfork();
	} else if (strcmp(action, "spawn") == 0) {
		do_spawn();
	} else if (strcmp(action, "threads") == 0) {
		threads(count);
	} else if (strcmp(action, "thread-forks") == 0) {
		thread_forks();
	} else if (strcmp(action, "leader-leaves") == 0) {
		leader_leaves();
	} else if (strcmp(action, "thread-races") == 0) {
		thread_races(count);
	} else if (strcmp(action, "crash") == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	} else if (strcmp(action, "nested") == 0) {
		nested();
	} else {
		fprintf(stderr, "kernel_actions: unknown action\n");
		return 1;
	}
	return 0;
}
