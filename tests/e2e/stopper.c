/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/e2e/stopper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

#define PAUSE_NS 80000

static void on_signal(int number)
{
	static const struct timespec pause = { .tv_nsec = PAUSE_NS };
	static uint32_t stops;
	int saved_errno = errno;

	(void)number;
	if (__atomic_fetch_add(&stops, 1, __ATOMIC_RELAXED) % 2)
		sched_yield();
	else
		nanosleep(&pause, NULL);
	errno = saved_errno;
}

void stopper_init(void)
{
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	if (sigaction(SIGRTMIN, &action, NULL))
		abort();
}

timer_t stopper_start(int32_t tid, unsigned every_us)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	const struct timespec every = {
		.tv_sec = every_us / 1000000,
		.tv_nsec = every_us % 1000000 * 1000L,
	};
	const struct itimerspec often = { .it_interval = every, .it_value = every };
	timer_t timer;

	event._sigev_un._tid = tid;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL))
		abort();
	return timer;
}

void stopper_end(timer_t timer)
{
	timer_delete(timer);
}
