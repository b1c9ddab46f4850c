/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugins FILE ROUNDS: loads a C++ library, which brings libstdc++ with it and keeps its symbols to
 * itself, calls it from two threads and unloads it, while two other threads allocate.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*run_function)(unsigned long);

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
	return (*(run_function *)run)(73002) == 1 ? NULL : run;
}

static int load(const char *file)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
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

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int status = 0;

	if (argc < 3)
		return 95;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, churn, NULL))
			return 97;
	for (long i = atol(argv[2]); i > 0 && !status; i--)
		status = load(argv[1]);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return status;
}
