/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pingpong ROUNDS: two threads on two processors hand a block to each other; who gets it frees it
 * and takes the next. With clocks that differ between processors, frees would come before their
 * allocations. The blocks' sizes count up from 100 and begin anew at 1100.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

static void *box[2]; /* what lies ready for each thread */
static long rounds;

static void *play(void *data)
{
	int self = (int)(intptr_t)data;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(self, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	for (long i = self; i < rounds; i += 2) {
		void *block;

		while (!(block = __atomic_exchange_n(&box[self], NULL, __ATOMIC_ACQ_REL)))
			sched_yield();
		free(block);
		block = malloc(100 + (size_t)(i % 1000));
		if (!block)
			abort();
		__atomic_store_n(&box[!self], block, __ATOMIC_RELEASE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	rounds = argc > 1 ? atol(argv[1]) : 1000;
	box[0] = malloc(99);
	if (pthread_create(&thread, NULL, play, (void *)1))
		return 97;
	play(NULL);
	pthread_join(thread, NULL);
	free(box[0]);
	free(box[1]);
	return 0;
}
