/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tsd THREADS: each thread leaves a value whose destructor frees it, takes a new block and sets the
 * value again, for as many rounds as there are. Half of the threads are detached and may still be
 * ending when main calls exit(). Sizes: 50000 in the thread, 50001 to 50003 in the destructors.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 3

struct value {
	int round;
};

static pthread_key_t key;

static void destroy(void *data)
{
	struct value *value = data;
	int round = value->round + 1;

	free(value);
	if (round > ROUNDS)
		return;
	value = malloc(50000 + (size_t)round);
	if (!value)
		abort();
	value->round = round;
	pthread_setspecific(key, value);
}

static void *leave_value(void *unused)
{
	struct value *value = malloc(50000);

	if (!value)
		abort();
	value->round = 0;
	pthread_setspecific(key, value);
	return unused;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 10;
	pthread_attr_t detached;
	pthread_t thread;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_key_create(&key, destroy))
		return 97;
	for (int i = 0; i < count; i++) {
		if (pthread_create(&thread, NULL, leave_value, NULL))
			return 97;
		pthread_join(thread, NULL);
	}
	if (argc > 2)
		for (int i = 0; i < count; i++)
			if (pthread_create(&thread, &detached, leave_value, NULL))
				return 97;
	exit(0);
}
