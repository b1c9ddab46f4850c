/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes processes in PID namespaces of their own and has each of them allocate without an exec.
 * Ends with 77 where no namespaces are to be had.
 *
 * nester ACTION [COUNT [PAUSE]]: each process that is made allocates COUNT blocks and then stays
 * for PAUSE milliseconds.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int count = 500, pause_ms;
static char *const *arguments;

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static void allocate(size_t size)
{
	for (int i = 0; i < count; i++) {
		void *volatile block = malloc(size);

		free(block);
	}
}

static void stay(void)
{
	if (pause_ms > 0)
		usleep((useconds_t)pause_ms * 1000);
}

static void *allocate_in_thread(void *size)
{
	allocate(*(size_t *)size);
	return NULL;
}

static void enter(void)
{
	if (unshare(geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID)) {
		perror("unshare");
		_exit(77);
	}
}

static void await(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	if (status != 0)
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* A child that allocates and does what comes then. */
static pid_t make(size_t size, void (*then)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid != 0)
		return pid;
	allocate(size);
	stay();
	if (then)
		then();
	_exit(0);
}

static pid_t raw_clone(unsigned long flags, size_t size)
{
	pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid < 0) {
		perror("clone");
		_exit(77);
	}
	if (pid != 0)
		return pid;
	allocate(size);
	stay();
	_exit(0);
}

static void make_children(void)
{
	pid_t first = make(7002, NULL), second = make(7003, NULL);

	await(first);
	await(second);
	await(make(7004, NULL));
}

static void enter_again(void)
{
	enter();
	await(make(7012, make_children));
}

static void make_threads(void)
{
	static size_t sizes[] = { 7022, 7023 };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, allocate_in_thread, &sizes[i]))
			die("pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	await(make(7024, NULL));
}

static void execute(void)
{
	execv(arguments[0], arguments);
	die("execv");
}

static void siblings(void)
{
	pid_t pids[3];
	int ready[2];
	char byte;

	if (pipe(ready))
		die("pipe");
	/* The first of a namespace has to live as long as others are to come. */
	pids[0] = fork();
	if (pids[0] == 0) {
		allocate(7041);
		stay();
		close(ready[1]);
		_exit(read(ready[0], &byte, 1) != 0);
	}
	for (int i = 1; i < 3; i++)
		pids[i] = make(7041 + (size_t)i, NULL);
	await(pids[1]);
	await(pids[2]);
	for (size_t i = 0; i < 20; i++)
		await(make(7044, NULL));
	close(ready[1]);
	await(pids[0]);
}

int main(int argc, char **argv)
{
	const char *action = argc > 1 ? argv[1] : "";
	char block[] = "block", *again[] = { argv[0], block, argc > 2 ? argv[2] : NULL, NULL };

	arguments = again;
	if (argc > 2)
		count = atoi(argv[2]);
	if (argc > 3)
		pause_ms = atoi(argv[3]);
	if (strcmp(action, "block") == 0) {
		allocate(7032);
		return 0;
	}
	if (strcmp(action, "raw") == 0) {
		await(raw_clone(CLONE_NEWPID | (geteuid() == 0 ? 0 : CLONE_NEWUSER), 7051));
		return 0;
	}
	enter();
	if (strcmp(action, "one") == 0)
		await(make(7001, NULL));
	else if (strcmp(action, "children") == 0)
		await(make(7001, make_children));
	else if (strcmp(action, "twice") == 0)
		await(make(7011, enter_again));
	else if (strcmp(action, "threads") == 0)
		await(make(7021, make_threads));
	else if (strcmp(action, "exec") == 0)
		await(make(7031, execute));
	else if (strcmp(action, "siblings") == 0)
		siblings();
	else
		return 2;
	return 0;
}
