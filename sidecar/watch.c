/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sidecar/child.h"
#include "sidecar/patience.h"

/* Beyond that many at once processes are asked after by number: slower, and a reused one lies. */
#define PIDFDS_MAX 4096

struct watched {
	pid_t pid;
	int fd; /* -1: by number */
};

struct mt_watch {
	size_t count, room;
	size_t met;   /* processes of the order engine's list that were taken up */
	size_t unmet; /* and that were not, for want of memory */
	struct watched *list;
	pid_t ended[MT_WATCH_MISSED_MAX]; /* when mt_watch_missed() looked last */
	size_t ended_count;
};

struct mt_watch *mt_watch_new(void)
{
	return calloc(1, sizeof(struct mt_watch));
}

void mt_watch_free(struct mt_watch *watch)
{
	size_t i;

	if (!watch)
		return;
	for (i = 0; i < watch->count; i++) {
		if (watch->list[i].fd >= 0)
			close(watch->list[i].fd);
	}
	free(watch->list);
	free(watch);
}

bool mt_watch_add(struct mt_watch *watch, pid_t pid)
{
	struct watched *list;
	size_t i, room;
	int fd = -1;

	for (i = 0; i < watch->count; i++) {
		if (watch->list[i].pid == pid)
			return true;
	}
	if (watch->count == watch->room) {
		room = watch->room ? 2 * watch->room : 64;
		list = mt_patient_realloc(watch->list, room * sizeof(*list));
		if (!list)
			return false;
		watch->list = list;
		watch->room = room;
	}
	if (watch->count < PIDFDS_MAX)
		fd = (int)syscall(SYS_pidfd_open, pid, 0u);
	watch->list[watch->count++] =
		(struct watched){ .pid = pid, .fd = fd < 0 ? -1 : mt_move_fd_high(fd) };
	return true;
}

static bool has_ended(const struct watched *watched)
{
	struct pollfd poll_fd = { .fd = watched->fd, .events = POLLIN };

	if (watched->fd >= 0)
		return poll(&poll_fd, 1, 0) == 1;
	return kill(watched->pid, 0) < 0 && errno == ESRCH;
}

static void remove_at(struct mt_watch *watch, size_t i)
{
	if (watch->list[i].fd >= 0)
		close(watch->list[i].fd);
	watch->list[i] = watch->list[--watch->count];
}

void mt_watch_remove(struct mt_watch *watch, pid_t pid)
{
	size_t i;

	for (i = 0; i < watch->count; i++) {
		if (watch->list[i].pid == pid) {
			remove_at(watch, i);
			return;
		}
	}
}

void mt_watch_meet(struct mt_watch *watch, const struct mt_order *order)
{
	const struct mt_order_process *list;
	size_t count = mt_order_processes(order, &list), i;

	/* The list only grows, but a process may turn up in it again when its number is reused. */
	for (i = count < watch->met ? 0 : watch->met; i < count; i++) {
		if (!list[i].exited && !mt_watch_add(watch, list[i].pid))
			break;
	}
	watch->met = i;
	watch->unmet = count - i;
}

size_t mt_watch_poll(struct mt_watch *watch, mt_watch_ended_fn *on_ended, void *context)
{
	size_t i;

	for (i = 0; i < watch->count;) {
		pid_t pid = watch->list[i].pid;

		if (!has_ended(&watch->list[i])) {
			i++;
			continue;
		}
		remove_at(watch, i);
		on_ended(context, pid);
	}
	/* Without memory for all of them there is one more at least. */
	return watch->count + (watch->unmet > 0);
}

/* Also a zombie, whose number nobody else has yet. */
static bool is_over(pid_t pid)
{
	struct watched watched = { .pid = pid };
	bool over;

	watched.fd = (int)syscall(SYS_pidfd_open, pid, 0u);
	over = has_ended(&watched);
	if (watched.fd >= 0)
		close(watched.fd);
	return over;
}

size_t mt_watch_missed(struct mt_watch *watch, pid_t *pids, size_t count)
{
	pid_t ended[MT_WATCH_MISSED_MAX];
	size_t ended_count = 0, missed = 0, i, before;

	for (i = 0; i < count && i < MT_WATCH_MISSED_MAX; i++) {
		if (!is_over(pids[i]))
			continue;
		ended[ended_count++] = pids[i];
		for (before = 0; before < watch->ended_count; before++) {
			if (watch->ended[before] == pids[i]) {
				pids[missed++] = pids[i];
				break;
			}
		}
	}
	memcpy(watch->ended, ended, ended_count * sizeof(ended[0]));
	watch->ended_count = ended_count;
	return missed;
}
