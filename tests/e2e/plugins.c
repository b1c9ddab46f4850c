/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugins ROUNDS FILE [FILE...]: four threads load a C++ library, which brings libstdc++ with it
 * and keeps its symbols to itself, call it, in which it throws, from two threads each, and unload
 * it, ROUNDS times in all, while four other threads allocate. The threads take turns with the
 * FILEs.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define LOADERS	 4
#define CHURNERS 4

typedef int (*run_function)(unsigned long);

static char **files;
static int file_count;
static int loads; /* begun */
static long rounds;
static int stop;

static void *churn(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 100; i++)
			free(malloc(100));
		usleep(500);
	}
	return unused;
}

static void *call(void *run)
{
	return (*(run_function *)run)(73002) >= 1 ? NULL : run;
}

static int load(void)
{
	int turn = __atomic_fetch_add(&loads, 1, __ATOMIC_RELAXED);
	void *library = dlopen(files[turn % file_count], RTLD_NOW | RTLD_LOCAL);
	pthread_t thread;
	run_function run;
	void *failed;

	if (!library)
		return 1;
	*(void **)&run = dlsym(library, "plugin_run");
	if (!run || run(73001) < 1)
		return 2;
	if (pthread_create(&thread, NULL, call, &run) || pthread_join(thread, &failed) || failed)
		return 3;
	dlclose(library);
	return 0;
}

static void *load_often(void *ret_status)
{
	for (long i = rounds / LOADERS; i > 0 && !*(int *)ret_status; i--)
		*(int *)ret_status = load();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[CHURNERS], loaders[LOADERS];
	int statuses[LOADERS] = { 0 };
	int status = 0;

	if (argc < 3)
		return 95;
	rounds = atol(argv[1]);
	files = argv + 2;
	file_count = argc - 2;
	for (int i = 0; i < CHURNERS; i++)
		if (pthread_create(&threads[i], NULL, churn, NULL))
			return 97;
	for (int i = 0; i < LOADERS; i++)
		if (pthread_create(&loaders[i], NULL, load_often, &statuses[i]))
			return 97;
	for (int i = 0; i < LOADERS; i++) {
		pthread_join(loaders[i], NULL);
		status = status ? status : statuses[i];
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < CHURNERS; i++)
		pthread_join(threads[i], NULL);
	return status;
}
