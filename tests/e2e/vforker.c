/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * vforker ROUNDS: children that share their parent's memory take blocks which the parent frees:
 * they are the parent's. Then children by posix_spawn that fail, by system() and popen(), and from
 * eight threads at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 10

#define THREADS 8
#define SPAWNS	10

static void *blocks[BLOCKS];
static char shared_failure;

static char name[] = "true";
static char *const arguments[] = { name, NULL };

/* The child borrows this frame: nothing in it may change on the way. */
static pid_t start_child(int executes)
{
	pid_t pid = vfork();

	if (pid)
		return pid;
	for (int k = 0; k < BLOCKS; k++)
		blocks[k] = malloc(3000);
	if (executes)
		execv("/bin/true", arguments);
	_exit(0);
}

static int share(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		int status;
		pid_t pid = start_child(i % 10 == 0);

		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
		for (int k = 0; k < BLOCKS; k++)
			free(blocks[k]);
		free(malloc(3001));
	}
	return 0;
}

static int spawn_missing(void)
{
	pid_t pid;

	for (int i = 0; i < 20; i++) {
		if (posix_spawn(&pid, "/no/such/program", NULL, NULL, arguments, environ) != ENOENT)
			return 1;
		free(malloc(3002));
	}
	return 0;
}

/* Children with file actions, which run in the child before its exec; each as well as it can fail.
 */
static void *spawn_with_actions(void *unused)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status;

	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_addopen(&actions, 9, "/dev/null", O_RDONLY, 0) ||
	    posix_spawn_file_actions_adddup2(&actions, 9, 10))
		return &shared_failure;
	for (int i = 0; i < SPAWNS; i++) {
		if (posix_spawn(&pid, "/bin/true", &actions, NULL, arguments, environ) ||
		    waitpid(pid, &status, 0) != pid || status)
			return &shared_failure;
		free(malloc(3003));
	}
	posix_spawn_file_actions_addclose(&actions, 9);
	posix_spawn_file_actions_adddup2(&actions, 9, 11);
	for (int i = 0; i < SPAWNS; i++) {
		if (!posix_spawn(&pid, "/bin/true", &actions, NULL, arguments, environ))
			return &shared_failure;
		free(malloc(3003));
	}
	posix_spawn_file_actions_destroy(&actions);
	return unused;
}

static int spawn_from_threads(void)
{
	pthread_t threads[THREADS];
	void *failed;
	int bad = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, spawn_with_actions, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		bad += pthread_join(threads[i], &failed) || failed;
	return bad;
}

static int shells(void)
{
	char line[16];
	FILE *pipe = popen("echo said", "r");

	if (!pipe || !fgets(line, sizeof(line), pipe) || pclose(pipe))
		return 1;
	return system("exit 0");
}

int main(int argc, char **argv)
{
	/* The counter names an image after the process that makes its first call: this one. */
	free(malloc(1));
	if (share(argc > 1 ? atoi(argv[1]) : 100))
		return 1;
	if (spawn_missing())
		return 2;
	if (shells())
		return 3;
	return spawn_from_threads() ? 4 : 0;
}
