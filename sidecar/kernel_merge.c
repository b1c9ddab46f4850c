// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sidecar/patience.h"

struct mt_kmerge_process {
	struct mt_kmerge_process *next;
	pid_t pid;
	unsigned int threads;
	bool in_exec; /* a new image has begun and its Exec was not given yet */
	bool doubted; /* an end that came meanwhile was taken for that of the events */
	struct mt_kev exec;
};

static struct mt_kmerge_process **process_slot(struct mt_kmerge *merge, pid_t pid)
{
	struct mt_kmerge_process **slot = &merge->buckets[(uint32_t)pid % MT_KMERGE_BUCKETS];

	while (*slot && (*slot)->pid != pid)
		slot = &(*slot)->next;
	return slot;
}

static struct mt_kmerge_process *process_find(struct mt_kmerge *merge, pid_t pid)
{
	return *process_slot(merge, pid);
}

/* NULL: no memory; what the process does is then given as far as that goes without it. */
static struct mt_kmerge_process *process_get(struct mt_kmerge *merge, pid_t pid)
{
	struct mt_kmerge_process **slot = process_slot(merge, pid);

	if (!*slot) {
		*slot = mt_patient_calloc(1, sizeof(**slot));
		if (*slot)
			(*slot)->pid = pid;
	}
	return *slot;
}

static void process_remove(struct mt_kmerge *merge, pid_t pid)
{
	struct mt_kmerge_process **slot = process_slot(merge, pid), *gone = *slot;

	if (!gone)
		return;
	*slot = gone->next;
	free(gone);
}

void mt_kmerge_fini(struct mt_kmerge *merge)
{
	size_t i;

	for (i = 0; i < MT_KMERGE_BUCKETS; i++)
		while (merge->buckets[i])
			process_remove(merge, merge->buckets[i]->pid);
	mt_kqueue_fini(&merge->held);
}

int mt_kmerge_follow(struct mt_kmerge *merge, pid_t pid, unsigned int threads)
{
	struct mt_kmerge_process *process = process_get(merge, pid);

	if (!process)
		return -ENOMEM;
	process->threads = threads;
	return 0;
}

static void give(struct mt_kmerge *merge, const struct mt_kev *event)
{
	merge->on_event(merge->context, event);
	merge->given++;
}

/* Gives or drops the mappings of `pid` that were held, at the time of its Exec. */
static void held_release(struct mt_kmerge *merge, pid_t pid, const struct mt_kev *exec)
{
	struct mt_kqueue kept = { 0 };
	size_t i;

	if (merge->held.count == 0)
		return;
	for (i = 0; i < merge->held.count; i++) {
		struct mt_kev event = mt_kqueue_event(&merge->held, &merge->held.records[i]);

		if (event.pid != pid) {
			mt_kqueue_push(&kept, MT_KREC_EVENT, &event);
			continue;
		}
		if (!exec)
			continue;
		event.time_ns = exec->time_ns;
		give(merge, &event);
	}
	mt_kqueue_fini(&merge->held);
	merge->held = kept;
}

/* The Exec of an image that perf has told of; `first` is its first mapping, or NULL. */
static void pending_exec_give(struct mt_kmerge *merge, struct mt_kmerge_process *process,
			      const struct mt_kev *first)
{
	struct mt_kev event = process->exec;

	process->in_exec = false;
	if (first) {
		event.time_ns = first->time_ns;
		event.path = first->path;
		event.path_len = first->path_len;
		event.dev = first->dev;
		event.ino = first->ino;
	}
	give(merge, &event);
}

static void perf_fork(struct mt_kmerge *merge, const struct mt_kev *event)
{
	struct mt_kmerge_process *process;
	struct mt_kev fork = *event;

	if (!merge->process_from_perf)
		return;
	if (merge->perf_is_global && !process_find(merge, event->parent_pid))
		return;
	process = process_get(merge, event->pid);
	if (event->pid == event->parent_pid) {
		if (process)
			process->threads++;
		return;
	}
	if (process) {
		/* Whatever had this number before has gone, and its end was lost. */
		process->threads = 1;
		process->in_exec = process->doubted = false;
	}
	fork.type = MT_KEV_FORK;
	give(merge, &fork);
}

static void perf_exec(struct mt_kmerge *merge, const struct mt_kev *event)
{
	struct mt_kmerge_process *process = process_get(merge, event->pid);

	if (!process)
		return;
	if (process->in_exec && merge->process_from_perf)
		pending_exec_give(merge, process, NULL);
	held_release(merge, event->pid, NULL);
	process->threads = 1;
	process->in_exec = true;
	process->doubted = false;
	process->exec = *event;
	process->exec.type = MT_KEV_EXEC;
	process->exec.path = "";
	process->exec.path_len = 0;
	if (!merge->exec_maps_from_perf)
		process->exec.exec_flags = MT_EXEC_MAPS_UNKNOWN;
}

static void perf_mmap(struct mt_kmerge *merge, const struct mt_kev *event)
{
	struct mt_kmerge_process *process = process_find(merge, event->pid);

	if (process && process->in_exec) {
		if (!merge->process_from_perf) {
			/* Of a new image: eBPF gives its Exec in a moment. */
			if (merge->exec_maps_from_perf)
				mt_kqueue_push(&merge->held, MT_KREC_EVENT, event);
			return;
		}
		pending_exec_give(merge, process, event);
	}
	if (merge->exec_maps_from_perf || merge->later_maps_from_perf)
		give(merge, event);
}

/*
 * No mapping between an exec and the end: of an image that its user may not read, or that has other
 * ids, the kernel takes the events away and says so as if the process had ended. It goes on, out of
 * sight. Events of all processes stay, and tell of the image's mappings next.
 */
static void perf_end_in_exec(struct mt_kmerge *merge, struct mt_kmerge_process *process,
			     const struct mt_kev *event)
{
	struct mt_kev unseen = *event;

	if (!merge->perf_is_global)
		pending_exec_give(merge, process, NULL);
	process->doubted = true;
	unseen.type = MT_KEV_UNSEEN;
	unseen.parent_pid = unseen.parent_tid = 0;
	give(merge, &unseen);
	if (!merge->perf_is_global)
		process_remove(merge, event->pid);
}

static void perf_exit(struct mt_kmerge *merge, const struct mt_kev *event)
{
	struct mt_kmerge_process *process = process_find(merge, event->pid);
	struct mt_kev exit = *event;

	if (!merge->process_from_perf)
		return;
	if (process && process->in_exec && !process->doubted) {
		perf_end_in_exec(merge, process, event);
		return;
	}
	if (process && process->in_exec)
		pending_exec_give(merge, process, NULL);
	exit.type = MT_KEV_THREAD_EXIT;
	exit.parent_pid = exit.parent_tid = 0;
	exit.exit_status = -1;
	give(merge, &exit);
	if (process && process->threads > 1) {
		process->threads--;
		return;
	}
	process_remove(merge, event->pid);
	exit.type = MT_KEV_EXIT;
	give(merge, &exit);
}

/* An event of eBPF, which is final; what perf has told of the same process follows it. */
static void event_give(struct mt_kmerge *merge, const struct mt_kev *event)
{
	struct mt_kmerge_process *process;
	struct mt_kev changed = *event;

	if (event->type == MT_KEV_EXEC && merge->exec_maps_from_perf)
		changed.exec_flags &= ~(uint32_t)MT_EXEC_MAPS_UNKNOWN;
	give(merge, &changed);
	if (event->type == MT_KEV_FORK) {
		process = process_get(merge, event->pid);
		if (process)
			process->in_exec = false;
	} else if (event->type == MT_KEV_EXEC) {
		process = process_find(merge, event->pid);
		if (process && process->in_exec)
			held_release(merge, event->pid, event);
		if (process)
			process->in_exec = false;
	} else if (event->type == MT_KEV_EXIT) {
		held_release(merge, event->pid, NULL);
		process_remove(merge, event->pid);
	}
}

int mt_kmerge_run(struct mt_kmerge *merge, const struct mt_kqueue *queue, size_t count,
		  mt_kernel_event_fn *on_event, void *context)
{
	size_t i;

	merge->on_event = on_event;
	merge->context = context;
	merge->given = 0;
	for (i = 0; i < count; i++) {
		struct mt_kev event = mt_kqueue_event(queue, &queue->records[i]);
		const enum mt_krecord_kind kind = queue->records[i].kind;

		/* A new process is not known yet; perf_fork() looks for its parent. */
		if (merge->perf_is_global && kind != MT_KREC_EVENT && kind != MT_KREC_PERF_FORK &&
		    !process_find(merge, event.pid))
			continue;
		switch (kind) {
		case MT_KREC_EVENT:
			event_give(merge, &event);
			break;
		case MT_KREC_PERF_FORK:
			perf_fork(merge, &event);
			break;
		case MT_KREC_PERF_EXEC:
			perf_exec(merge, &event);
			break;
		case MT_KREC_PERF_MMAP:
			perf_mmap(merge, &event);
			break;
		case MT_KREC_PERF_EXIT:
			perf_exit(merge, &event);
			break;
		}
	}
	return merge->given;
}
