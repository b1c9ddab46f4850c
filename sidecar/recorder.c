/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "sidecar/child.h"
#include "sidecar/job.h"
#include "sidecar/mappings.h"
#include "sidecar/patience.h"
#include "sidecar/watch.h"

#define SLEEP_MIN_NS	INT64_C(50000)
#define SLEEP_MAX_NS	INT64_C(1000000)
#define MS_NS		INT64_C(1000000)
#define WATCH_PERIOD_NS (20 * MS_NS)
/* How often ends are looked for that the kernel could not tell. */
#define LOST_EXITS_NS (500 * MS_NS)
/* A round with fewer events leaves the processor to the program before the next one. */
#define BUSY_EVENTS 4096
/* How long the root's exit record may take to come out of the kernel after wait(2) told of it. */
#define ROOT_EXIT_NS (100 * MS_NS)
/* How long the last processes may take to be met, where that makes their ends known. */
#define LAST_MET_NS (1000 * MS_NS)
/* Where ends are looked for: rounds in which the last processes' ends would have been noticed. */
#define LAST_IDLE_ROUNDS 3
/* Mappings read from /proc that wait for the merge to take them. */
#define MAPPINGS_WAITING_MAX 65536u

/*
 * How long before its hello a process was forked at the least: exec and the loader take much
 * longer. The exec takes the time of the hello, and both go through a clock's conversion.
 */
#define BIRTH_NS 20000

/* A process whose first word is its hello: what the kernel would have told of its fork. */
struct birth {
	struct birth *next;
	struct mt_kev event;
	bool in_tree; /* /proc says that the parent is of the tree */
	bool told;    /* the kernel did, after all */
};

struct mt_recorder {
	struct mt_recorder_options options;
	struct mt_order *order;
	struct mt_watch *watch;
	int event_fd;
	pthread_t thread;
	int64_t watched_ns; /* when the watch was last polled */
	bool looks;	    /* the ends of some processes, or all, are looked for */
	int64_t looked_ns;  /* when lost exits were last looked for */
	bool lossy;	    /* events of the kernel were lost */

	pthread_mutex_t lock;
	pthread_cond_t wake;	/* of the thread */
	pthread_cond_t settled; /* of mt_recorder_settle() */
	uint64_t idle_rounds;	/* since the start */
	struct birth *births;	/* newest first */
	struct birth *heard;	/* those that the drain under way decides on */
	struct mt_mappings *mappings, **mappings_tail;
	size_t mappings_waiting;
	uint32_t missed; /* of both, for want of memory or descriptors */
	bool root_ended;
	int root_status;
	bool root_status_known;
	bool end;
	bool over;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void watch_unseen(struct mt_recorder *recorder, pid_t pid)
{
	recorder->looks = true;
	(void)mt_watch_add(recorder->watch, pid);
}

static void on_kernel_event(void *context, const struct mt_kev *event)
{
	struct mt_recorder *recorder = context;
	struct birth *birth;

	recorder->lossy |= event->type == MT_KEV_LOST;
	for (birth = recorder->heard; birth; birth = birth->next)
		birth->told = birth->told || birth->event.pid == event->pid;
	mt_order_kernel_event(recorder->order, event);
	mt_coverage_kernel_event(recorder->options.coverage, event);
	if (event->type == MT_KEV_UNSEEN)
		watch_unseen(recorder, event->pid);
	else if (event->type == MT_KEV_EXIT)
		mt_watch_remove(recorder->watch, event->pid);
}

/* A process has ended that the kernel tells nothing of, or told in vain. */
static void on_ended_unseen(void *context, pid_t pid)
{
	struct mt_kev event = { .type = MT_KEV_EXIT, .pid = pid, .tid = pid, .exit_status = -1 };

	event.time_ns = (uint64_t)now_ns();
	on_kernel_event(context, &event);
}

/* The order engine found a child of such a one. */
static void on_unseen(void *context, pid_t pid)
{
	const struct mt_kev event = { .type = MT_KEV_UNSEEN, .pid = pid };
	struct mt_recorder *recorder = context;

	mt_coverage_kernel_event(recorder->options.coverage, &event);
	watch_unseen(recorder, pid);
}

static void on_past_us(void *context, pid_t pid, const char *path, uint32_t past_us)
{
	struct mt_recorder *recorder = context;

	mt_coverage_in_part(recorder->options.coverage, pid, path,
			    past_us & MT_PAST_DEEPBIND ? MT_UNTRACKED_DEEPBIND
						       : MT_UNTRACKED_DLMOPEN);
}

/* Without kernel events the order engine is told what the watch finds. */
static void on_ended(void *context, pid_t pid)
{
	struct mt_recorder *recorder = context;

	mt_order_process_ended(recorder->order, pid, 0, false);
}

/*
 * A process whose exit record got lost would seem to live on: then a sidecar of manual use, which
 * ends with its tree, would never end.
 */
static void make_lost_exits(struct mt_recorder *recorder)
{
	pid_t pids[MT_WATCH_MISSED_MAX];
	int64_t now = now_ns();
	size_t count, i;

	if (!recorder->lossy || now - recorder->looked_ns < LOST_EXITS_NS)
		return;
	recorder->looked_ns = now;
	count = mt_coverage_alive_list(recorder->options.coverage, pids, MT_WATCH_MISSED_MAX);
	count = mt_watch_missed(recorder->watch, pids, count);
	for (i = 0; i < count; i++)
		on_ended_unseen(recorder, pids[i]);
}

/* A process with this number that had not ended by `since_ns`. */
static bool is_known(const struct mt_order *order, pid_t pid, uint64_t since_ns)
{
	const struct mt_order_process *list;
	size_t i = mt_order_processes(order, &list);

	while (i-- > 0) {
		if (list[i].pid == pid && (!list[i].exited || list[i].last_ns >= since_ns))
			return true;
	}
	return false;
}

/* When a process was there for certain. A hello may be read when its sender has been killed and the
 * kernel has told all of it; who looks for the ends of processes may find them later than they
 * were. */
static uint64_t lived_ns(const struct mt_recorder *recorder, const struct birth *birth)
{
	return recorder->options.order.kernel_events ? birth->event.time_ns + BIRTH_NS : UINT64_MAX;
}

static void take_births(struct mt_recorder *recorder)
{
	pthread_mutex_lock(&recorder->lock);
	recorder->heard = recorder->births;
	recorder->births = NULL;
	pthread_mutex_unlock(&recorder->lock);
}

/* A process that the kernel should have told of, and did not, comes from one that is out of sight.
 */
static void tell_birth(struct mt_recorder *recorder, struct birth *birth)
{
	if (!recorder->options.order.kernel_events) {
		mt_order_kernel_event(recorder->order, &birth->event);
		return;
	}
	if (birth->told || mt_coverage_is_seen(recorder->options.coverage, birth->event.pid))
		return;
	on_kernel_event(recorder, &birth->event);
	birth->event.type = MT_KEV_UNSEEN;
	on_kernel_event(recorder, &birth->event);
}

/* Forks that the order engine has from the program itself, or knows the parent of no more, go. */
static void tell_births(struct mt_recorder *recorder)
{
	struct birth *birth;

	while ((birth = recorder->heard)) {
		recorder->heard = birth->next;
		if (!is_known(recorder->order, birth->event.pid, lived_ns(recorder, birth)) &&
		    (birth->in_tree || is_known(recorder->order, birth->event.parent_pid, 0)))
			tell_birth(recorder, birth);
		free(birth);
	}
}

/* They are not the coverage's: that counts what a new image maps. */
static void take_mappings(struct mt_recorder *recorder)
{
	struct mt_mappings *list, *mappings;
	size_t i;

	pthread_mutex_lock(&recorder->lock);
	list = recorder->mappings;
	recorder->mappings = NULL;
	recorder->mappings_tail = &recorder->mappings;
	recorder->mappings_waiting = 0;
	pthread_mutex_unlock(&recorder->lock);
	while ((mappings = list)) {
		list = mappings->next;
		for (i = 0; i < mappings->count; i++)
			mt_order_kernel_event(recorder->order, &mappings->events[i]);
		mt_mappings_free(mappings);
	}
}

/* What could not be had counts as lost by the kernel, in whose place it was to be. */
static void take_missed(struct mt_recorder *recorder)
{
	struct mt_kev event = { .type = MT_KEV_LOST };

	pthread_mutex_lock(&recorder->lock);
	event.lost = recorder->missed;
	recorder->missed = 0;
	pthread_mutex_unlock(&recorder->lock);
	if (event.lost)
		mt_order_kernel_event(recorder->order, &event);
}

static int drain(void *context)
{
	struct mt_recorder *recorder = context;
	int given;

	take_missed(recorder);
	take_mappings(recorder);
	if (recorder->options.order.kernel_events)
		make_lost_exits(recorder);
	/* Their forks are in the rings by now, where the kernel tells of them. */
	take_births(recorder);
	given = mt_kernel_drain(recorder->options.kernel, on_kernel_event, recorder);
	tell_births(recorder);
	return given;
}

int mt_recorder_new(const struct mt_recorder_options *options, struct mt_recorder **ret_recorder)
{
	struct mt_recorder *recorder = calloc(1, sizeof(*recorder));
	pthread_condattr_t attr;
	int err = -ENOMEM;

	if (!recorder)
		return -ENOMEM;
	recorder->options = *options;
	recorder->looks = !options->order.kernel_events;
	recorder->mappings_tail = &recorder->mappings;
	recorder->options.order.drain = drain;
	recorder->options.order.drain_context = recorder;
	recorder->options.order.on_unseen = on_unseen;
	recorder->options.order.on_past_us = on_past_us;
	pthread_mutex_init(&recorder->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&recorder->wake, &attr);
	pthread_cond_init(&recorder->settled, &attr);
	pthread_condattr_destroy(&attr);
	recorder->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (recorder->event_fd < 0) {
		err = -errno;
		goto fail;
	}
	recorder->event_fd = mt_move_fd_high(recorder->event_fd);
	recorder->watch = mt_watch_new();
	if (!recorder->watch)
		goto fail;
	err = mt_order_new(&recorder->options.order, &recorder->order);
	if (err)
		goto fail;
	*ret_recorder = recorder;
	return 0;

fail:
	mt_recorder_free(recorder);
	return err;
}

void mt_recorder_free(struct mt_recorder *recorder)
{
	if (!recorder)
		return;
	while (recorder->births) {
		struct birth *birth = recorder->births;

		recorder->births = birth->next;
		free(birth);
	}
	while (recorder->mappings) {
		struct mt_mappings *mappings = recorder->mappings;

		recorder->mappings = mappings->next;
		mt_mappings_free(mappings);
	}
	mt_order_free(recorder->order);
	mt_watch_free(recorder->watch);
	if (recorder->event_fd >= 0)
		close(recorder->event_fd);
	pthread_cond_destroy(&recorder->settled);
	pthread_cond_destroy(&recorder->wake);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder);
}

struct mt_order *mt_recorder_order(struct mt_recorder *recorder)
{
	return recorder->order;
}

int mt_recorder_fd(const struct mt_recorder *recorder)
{
	return recorder->event_fd;
}

static void announce(struct mt_recorder *recorder)
{
	uint64_t one = 1;

	pthread_mutex_lock(&recorder->lock);
	recorder->over = true;
	pthread_mutex_unlock(&recorder->lock);
	/* The counter cannot overflow: it is written twice at most. */
	if (write(recorder->event_fd, &one, sizeof(one)) < 0)
		return;
}

static void look_after_processes(struct mt_recorder *recorder)
{
	bool kernel_events = recorder->options.order.kernel_events, tell = false, known = false;
	int64_t now = now_ns();
	size_t alive = 1;
	int status = 0;

	if (now - recorder->watched_ns < WATCH_PERIOD_NS)
		return;
	recorder->watched_ns = now;
	if (!kernel_events) {
		pthread_mutex_lock(&recorder->lock);
		tell = recorder->root_ended;
		status = recorder->root_status;
		known = recorder->root_status_known;
		recorder->root_ended = false;
		pthread_mutex_unlock(&recorder->lock);
		if (tell)
			mt_order_process_ended(recorder->order, recorder->options.root, status,
					       known);
		mt_watch_meet(recorder->watch, recorder->order);
		alive = mt_watch_poll(recorder->watch, on_ended, recorder);
	} else {
		(void)mt_watch_poll(recorder->watch, on_ended_unseen, recorder);
		if (recorder->options.whole_tree)
			alive = mt_coverage_alive(recorder->options.coverage);
	}
	if (recorder->options.whole_tree && alive == 0 && !mt_recorder_is_over(recorder))
		announce(recorder);
}

/* Sleeps as long as the last rounds were idle; returns false when the end was asked for. */
static bool rest(struct mt_recorder *recorder, size_t events, int64_t *sleep_ns)
{
	struct timespec ts;
	int64_t until;
	bool go_on;

	pthread_mutex_lock(&recorder->lock);
	if (events == 0) {
		recorder->idle_rounds++;
		pthread_cond_broadcast(&recorder->settled);
	}
	*sleep_ns = events ? SLEEP_MIN_NS : 2 * *sleep_ns;
	if (*sleep_ns > SLEEP_MAX_NS)
		*sleep_ns = SLEEP_MAX_NS;
	if (!recorder->end && events < BUSY_EVENTS) {
		until = now_ns() + *sleep_ns;
		ts.tv_sec = until / 1000000000;
		ts.tv_nsec = until % 1000000000;
		pthread_cond_timedwait(&recorder->wake, &recorder->lock, &ts);
	}
	go_on = !recorder->end;
	pthread_mutex_unlock(&recorder->lock);
	return go_on;
}

/*
 * The root is gone, so all that it recorded is published: what is missing is its exit record, which
 * the kernel writes before wait(2) returns. So this rarely takes more than three rounds.
 */
static void finish(struct mt_recorder *recorder)
{
	int64_t start = now_ns(), deadline = start + ROOT_EXIT_NS, sleep_ns = SLEEP_MIN_NS;
	const struct mt_order_process *list;
	size_t met, met_before = 0;
	struct timespec ts;
	int idle = 0;

	while (now_ns() < deadline) {
		size_t events;

		recorder->watched_ns = 0;
		look_after_processes(recorder);
		events = mt_order_round(recorder->order);
		idle = events ? 0 : idle + 1;
		/* A storm of forks that is read late: whoever it made may have ended long since. */
		met = mt_order_processes(recorder->order, &list);
		if (recorder->looks && met != met_before)
			deadline = now_ns() + ROOT_EXIT_NS;
		if (deadline > start + LAST_MET_NS)
			deadline = start + LAST_MET_NS;
		met_before = met;
		if (mt_order_process_done(recorder->order, recorder->options.root) &&
		    (!recorder->looks || idle >= LAST_IDLE_ROUNDS))
			break;
		if (events)
			continue;
		ts = (struct timespec){ .tv_nsec = sleep_ns };
		nanosleep(&ts, NULL);
		if (sleep_ns < SLEEP_MAX_NS)
			sleep_ns *= 2;
	}
	mt_order_close_segments(recorder->order);
	mt_order_finish(recorder->order);
}

static void *thread_main(void *arg)
{
	struct mt_recorder *recorder = arg;
	int64_t sleep_ns = SLEEP_MIN_NS;
	size_t events;

	do {
		events = mt_order_round(recorder->order);
		look_after_processes(recorder);
	} while (rest(recorder, events, &sleep_ns));
	finish(recorder);
	announce(recorder);
	return NULL;
}

int mt_recorder_start(struct mt_recorder *recorder)
{
	if (!recorder->options.order.kernel_events)
		mt_watch_add(recorder->watch, recorder->options.root);
	return -pthread_create(&recorder->thread, NULL, thread_main, recorder);
}

/* Did the kernel tell of the process, or will it, as far as can be known before the next drain? */
static bool is_told(const struct mt_recorder *recorder, pid_t pid)
{
	if (!recorder->options.order.kernel_events)
		return false;
	/* Of one that has ended its end may have been told already, and its start with it. */
	return !recorder->options.by_perf || mt_coverage_is_seen(recorder->options.coverage, pid) ||
	       !mt_job_lives(pid);
}

void mt_recorder_hello(struct mt_recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct birth *birth;
	pid_t parent;

	if (pid == recorder->options.root || is_told(recorder, pid))
		return;
	parent = mt_job_parent(pid);
	if (parent <= 0)
		return;
	birth = mt_patient_calloc(1, sizeof(*birth));
	if (!birth) { /* the process is then one without a known parent */
		pthread_mutex_lock(&recorder->lock);
		recorder->missed++;
		pthread_mutex_unlock(&recorder->lock);
		return;
	}
	birth->event.type = MT_KEV_FORK;
	birth->event.pid = birth->event.tid = pid;
	birth->event.parent_pid = birth->event.parent_tid = parent;
	birth->event.time_ns = time_ns - BIRTH_NS;
	birth->event.exec_flags = MT_EXEC_GUESSED;
	birth->in_tree = mt_job_is_in_tree(parent, recorder->options.root);
	pthread_mutex_lock(&recorder->lock);
	birth->next = recorder->births;
	recorder->births = birth;
	pthread_mutex_unlock(&recorder->lock);
}

void mt_recorder_mappings(struct mt_recorder *recorder, pid_t pid)
{
	struct mt_mappings *mappings;
	int err = mt_mappings_read(pid, &mappings);
	size_t i;

	pthread_mutex_lock(&recorder->lock);
	/* Of a process that has gone, or is another user's, there is nothing to be had. */
	recorder->missed += err && err != -ENOENT && err != -ESRCH && err != -EACCES;
	if (!mappings) {
		pthread_mutex_unlock(&recorder->lock);
		return;
	}
	/* The time is taken here, so that no round has passed it before it finds them. */
	for (i = 0; i < mappings->count; i++)
		mappings->events[i].time_ns = (uint64_t)now_ns();
	recorder->mappings_waiting += mappings->count;
	*recorder->mappings_tail = mappings;
	recorder->mappings_tail = &mappings->next;
	pthread_mutex_unlock(&recorder->lock);
}

bool mt_recorder_has_room(struct mt_recorder *recorder, uint64_t *ret_moved_ns)
{
	bool has_room;

	pthread_mutex_lock(&recorder->lock);
	has_room = recorder->mappings_waiting < MAPPINGS_WAITING_MAX;
	pthread_mutex_unlock(&recorder->lock);
	return mt_order_has_room(recorder->order, ret_moved_ns) && has_room;
}

void mt_recorder_root_ended(struct mt_recorder *recorder, int status, bool status_known)
{
	pthread_mutex_lock(&recorder->lock);
	recorder->root_ended = true;
	recorder->root_status = status;
	recorder->root_status_known = status_known;
	pthread_mutex_unlock(&recorder->lock);
}

void mt_recorder_settle(struct mt_recorder *recorder, int timeout_ms)
{
	int64_t until = now_ns() + timeout_ms * MS_NS;
	struct timespec ts = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };
	uint64_t target;

	pthread_mutex_lock(&recorder->lock);
	/* The round that runs now may have looked already: two idle ones after it have not. */
	target = recorder->idle_rounds + 2;
	pthread_cond_broadcast(&recorder->wake);
	while (recorder->idle_rounds < target && !recorder->over) {
		if (pthread_cond_timedwait(&recorder->settled, &recorder->lock, &ts) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&recorder->lock);
}

void mt_recorder_end(struct mt_recorder *recorder)
{
	pthread_mutex_lock(&recorder->lock);
	recorder->end = true;
	pthread_cond_broadcast(&recorder->wake);
	pthread_mutex_unlock(&recorder->lock);
}

bool mt_recorder_is_over(struct mt_recorder *recorder)
{
	bool over;

	pthread_mutex_lock(&recorder->lock);
	over = recorder->over;
	pthread_mutex_unlock(&recorder->lock);
	return over;
}

void mt_recorder_join(struct mt_recorder *recorder)
{
	pthread_join(recorder->thread, NULL);
}
