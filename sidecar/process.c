/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes of the tree: their memory, their images, and what the artifact says of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sidecar/order_impl.h"
#include "sidecar/patience.h"
#include "sidecar/pending.h"
#include "sidecar/pidns.h"
#include "sidecar/process.h"

#define CHECK_NS UINT64_C(1000000000)

static struct mt_process **bucket_of(struct mt_order *order, int32_t pid)
{
	return &order->processes[(uint32_t)pid % MT_PROCESS_BUCKETS];
}

struct mt_process *mt_process_find(const struct mt_order *order, int32_t pid)
{
	struct mt_process *process = order->processes[(uint32_t)pid % MT_PROCESS_BUCKETS];

	while (process && process->pid != pid)
		process = process->next;
	return process;
}

static bool reserve_record(struct mt_order *order)
{
	size_t space = order->record_space ? 2 * order->record_space : 64;
	void *records;

	if (order->record_count < order->record_space)
		return true;
	records = mt_patient_realloc(order->records, space * sizeof(*order->records));
	if (!records)
		return false;
	order->records = records;
	order->record_space = space;
	return true;
}

/* An older process with the same number stays behind it in the bucket, never to be found again. */
static struct mt_process *add(struct mt_order *order, int32_t pid, int32_t parent_pid)
{
	struct mt_process *process, **bucket = bucket_of(order, pid);

	if (!reserve_record(order))
		return NULL;
	process = mt_patient_calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->parent_pid = parent_pid;
	process->record = order->record_count++;
	order->records[process->record] = (struct mt_order_process){
		.pid = pid,
		.parent_pid = parent_pid,
	};
	process->next = *bucket;
	*bucket = process;
	return process;
}

struct mt_process *mt_process_get(struct mt_order *order, int32_t pid)
{
	struct mt_process *process = mt_process_find(order, pid);

	return process ? process : add(order, pid, 0);
}

bool mt_process_is_drained(const struct mt_process *process)
{
	for (const struct mt_bind *bind = process->binds; bind; bind = bind->next)
		if (!bind->ended && !mt_bind_drained(bind))
			return false;
	return true;
}

void mt_process_begin_end(const struct mt_order *order, struct mt_process *process, uint64_t stamp)
{
	if (process->exited || process->over_round != 0)
		return;
	process->over_round = order->round + 1;
	process->over_stamp = stamp;
}

bool mt_process_is_silent(const struct mt_order *order, struct mt_process *process)
{
	if (process->over_round == 0 || process->over_round > order->round)
		return false;
	if (process->silent_round != order->round) {
		process->silent_round = order->round;
		process->silent = mt_process_is_drained(process);
	}
	return process->silent;
}

struct mt_space *mt_process_space(struct mt_order *order, struct mt_process *process)
{
	if (!process->space) {
		process->space = mt_space_new(&order->budget);
		if (process->space)
			process->space->live.blind = process->blind;
	}
	return process->space;
}

struct mt_process *mt_process_ended_after(const struct mt_order *order, int32_t pid,
					  uint64_t time_ns)
{
	struct mt_process *process = mt_process_find(order, pid);

	return process && process->exited && time_ns <= process->exit_ns ? process : NULL;
}

/* The process that a new image is of. One that has exited stays so: whoever has its number now is
 * another, whose Fork was lost. NULL: the word came too late, or out of memory. */
static struct mt_process *exec_process(struct mt_order *order, const struct mt_kev *kev)
{
	struct mt_process *process = mt_process_find(order, kev->pid);

	if (!process || !process->exited)
		return mt_process_get(order, kev->pid);
	return kev->time_ns <= process->exit_ns ? NULL : add(order, kev->pid, 0);
}

bool mt_process_is_told(const struct mt_order *order, const struct mt_process *process)
{
	return order->options.kernel_events && !order->kernel_lossy &&
	       !(process && process->unseen);
}

static struct mt_event *write_event(struct mt_order *order, const struct mt_process *process,
				    enum mt_event_type type, const struct mt_kev_node *node)
{
	struct mt_event *event = mt_sink_add(&order->sink, node->stamp);
	struct mt_order_process *record = mt_process_record(order, process);
	uint64_t ns = event->timestamp_ns;

	memset(event, 0, sizeof(*event));
	event->timestamp_ns = ns;
	event->type = (uint8_t)type;
	event->pid = process->pid;
	event->tid = node->event.tid ? node->event.tid : process->pid;
	if (record->events++ == 0)
		record->first_ns = ns;
	record->last_ns = ns;
	return event;
}

/* Its memory is gone, by exit or exec: readers are drained, unless the wait for them was given up,
 * in which case what they still have comes after. */
static void end_memory(struct mt_order *order, struct mt_process *process)
{
	bool drained = true;

	for (struct mt_bind *bind = process->binds; bind; bind = bind->next) {
		if (bind->ended)
			continue;
		drained = drained && mt_bind_drained(bind);
		for (struct mt_reader *at = bind->readers; at && drained; at = at->next)
			mt_origin_end(&order->repair, &at->origin);
		mt_bind_end(order, bind);
	}
	if (drained) {
		for (struct mt_bind *bind = process->binds; bind; bind = bind->next)
			for (struct mt_reader *at = bind->readers; at; at = at->next)
				if (at->origin.space == process->space) /* else an orphan */
					at->origin.space = NULL;
		mt_space_end(&order->repair, process->space);
	} else if (process->space) {
		process->space->next = order->orphans; /* stays for them, until the end */
		order->orphans = process->space;
	}
	process->space = NULL;
	if (process->image)
		process->image->users--;
	process->image = NULL;
	process->over_round = 0;
	process->birth.slot = UINT32_MAX; /* of the image that it was forked in, and no other */
}

/* Whose memory a process uses: a vfork child's is its parent's. */
static struct mt_process *memory_of(const struct mt_order *order, struct mt_process *process)
{
	for (int depth = 0; process && process->vfork && depth < 64; depth++)
		process = mt_process_find(order, process->parent_pid);
	return process;
}

bool mt_process_is_others(const struct mt_order *order, int32_t pid, const struct mt_image *image)
{
	const struct mt_process *process = mt_process_find(order, pid);

	if (!process || process->exited || process->image == image)
		return false;
	/* Where the kernel tells all, it has told of this one, and that it does not share the
	 * segment. */
	return process->image || (order->options.kernel_events && !order->kernel_lossy);
}

/* There is no memory for what an event tells. What can be asked for will be. */
static void lose(struct mt_order *order)
{
	order->sink.stats.kernel_lost++;
	order->kernel_lossy = true;
}

static void begin_unseen(struct mt_order *order, struct mt_process *process)
{
	process->unseen = true;
	if (order->options.on_unseen)
		order->options.on_unseen(order->options.drain_context, process->pid);
}

static void apply_fork(struct mt_order *order, const struct mt_kev_node *node)
{
	const struct mt_kev *kev = &node->event;
	struct mt_process *parent = mt_process_get(order, kev->parent_pid), *memory;
	struct mt_process *process = mt_process_find(order, kev->pid);

	if (node->image && mt_process_is_others(order, kev->pid, node->image))
		return;
	if (process && !process->exited) {
		/* Each hello makes one, until the first has been applied. */
		if (kev->exec_flags & MT_EXEC_GUESSED)
			return;
		/* The kernel's own word of a Fork that was taken for lost, or the other way. */
		if ((process->fork_asked || node->image) &&
		    process->parent_pid == kev->parent_pid) {
			process->fork_asked = false;
			return;
		}
		end_memory(order, process); /* its Exit was lost */
		process->exited = true;
	}
	process = add(order, kev->pid, kev->parent_pid);
	if (!parent || !process) {
		lose(order);
		return;
	}
	process->ns_pid = kev->ns_pid;
	process->parent_tid = kev->parent_tid;
	process->fork_stamp = node->stamp;
	process->older_sibling = parent->newest_child;
	parent->newest_child = process;
	process->fork_asked = node->image != NULL;
	process->vfork = (kev->exec_flags & MT_EXEC_VFORK) != 0;
	if (node->image && parent->unseen)
		begin_unseen(order, process);
	memory = memory_of(order, parent);
	if (!process->vfork && memory) {
		if (memory->space) {
			process->space = mt_space_fork(&order->repair.shelf, memory->space);
			process->blind = !process->space;
		}
		/* Whose parent's end is written already has its segment all the same. */
		process->image = memory->exited ? node->image : memory->image;
		if (process->image)
			process->image->users++;
	}
	if (node->birth.number != 0)
		mt_pidns_tell(order, process, &node->birth);
	write_event(order, process, MT_EVENT_FORK, node)->aux = (uint32_t)kev->parent_pid;
}

void mt_process_attach(struct mt_order *order, struct mt_image *image)
{
	struct mt_process *process = mt_process_get(order, image->pid);

	image->attached = true;
	if (!process)
		return;
	if (process->image) /* a child that shared its parent's segment and said hello itself */
		process->image->users--;
	process->image = image; /* takes over the use counted at the intake */
	process->image_ns = image->hello_ns;
	mt_process_record(order, process)->images++;
	image->process = process;
}

static void apply_exec(struct mt_order *order, const struct mt_kev_node *node)
{
	struct mt_image *image = node->image;
	struct mt_process *process, *ended;

	if (image && image->attached) /* asked for, and the kernel's own came or its Exit did */
		return;
	process = exec_process(order, &node->event);
	if (!process) {
		ended = mt_process_ended_after(order, node->event.pid, node->event.time_ns);
		if (!ended)
			lose(order);
		else if (image)
			mt_process_abandon(ended, image);
		return;
	}
	end_memory(order, process);
	process->vfork = false;
	process->unseen = process->unseen && image;
	write_event(order, process, MT_EVENT_EXEC, node);
	process->exec_ns = node->event.time_ns;
	if (image)
		mt_process_attach(order, image);
}

void mt_process_abandon(struct mt_process *process, struct mt_image *image)
{
	image->abandoned = true;
	image->attached = true;
	image->process = process;
	image->users--;
}

void mt_reader_give_up(struct mt_order *order, struct mt_reader *reader)
{
	struct mt_stream *stream = &reader->stream;
	uint64_t left = stream->seen - stream->taken;

	mt_lost_add(&order->sink.stats.lost[MT_LOST_LATE], left);
	mt_lost_add(&mt_process_record(order, reader->bind->process)->lost[MT_LOST_LATE], left);
	stream->stopped = true;
	stream->seen = stream->covered = stream->taken;
}

static void give_up_readers(struct mt_order *order, struct mt_process *process)
{
	for (struct mt_bind *bind = process->binds; bind; bind = bind->next)
		for (struct mt_reader *reader = bind->readers; reader; reader = reader->next)
			if (!mt_reader_drained(reader))
				mt_reader_give_up(order, reader);
}

/* Images that registered and began no stream, or whose streams nobody waits for any more. */
static void abandon_images(struct mt_order *order, struct mt_process *process)
{
	for (struct mt_image *image = order->images; image; image = image->next)
		if (!image->attached && image->pid == process->pid &&
		    image->hello_ns <= process->exit_ns)
			mt_process_abandon(process, image);
}

static void apply_exit(struct mt_order *order, const struct mt_kev_node *node)
{
	struct mt_process *process = mt_process_get(order, node->event.pid);
	struct mt_order_process *record;

	if (!process || process->exited)
		return;
	give_up_readers(order, process); /* of them only those that the wait was given up for */
	end_memory(order, process);
	write_event(order, process, MT_EVENT_EXIT, node);
	process->exited = true;
	process->exit_ns = node->event.time_ns;
	record = mt_process_record(order, process);
	record->exited = true;
	if (!record->status_known && !process->exit_asked && node->event.exit_status >= 0) {
		record->exit_status = node->event.exit_status;
		record->status_known = true;
	}
	abandon_images(order, process);
}

static void apply_thread_exit(struct mt_order *order, const struct mt_kev_node *node)
{
	const struct mt_kev *kev = &node->event;
	struct mt_process *process = mt_process_find(order, kev->pid);

	for (struct mt_bind *bind = process ? process->binds : NULL; bind; bind = bind->next) {
		for (struct mt_reader *at = bind->readers; at; at = at->next) {
			if (at->claim_stamp <= node->stamp &&
			    (at->origin.tid == kev->tid ||
			     (kev->ns_tid != 0 && at->tid == kev->ns_tid)))
				mt_reader_mark_gone(order, at);
		}
	}
}

static void apply_mapping(struct mt_order *order, const struct mt_kev_node *node)
{
	const struct mt_kev *kev = &node->event;
	struct mt_process *process = mt_process_get(order, kev->pid);
	struct mt_mapping *mapping;
	struct mt_event *event;
	char *path;

	if (!process || process->exited)
		return;
	process->unseen = false;
	/* The event first: it may start a new batch, whose arena the rest must be in. */
	event = write_event(order, process, MT_EVENT_MAPPING, node);
	mapping = mt_batch_alloc(order->sink.batch, sizeof(*mapping));
	path = mt_batch_alloc(order->sink.batch, kev->path_len + 1);
	if (!mapping || !path) {
		order->sink.batch->count--;
		mt_process_record(order, process)->events--;
		order->sink.stats.kernel_lost++;
		return;
	}
	memcpy(path, node->path, kev->path_len);
	*mapping = (struct mt_mapping){
		.dev = kev->dev,
		.ino = kev->ino,
		.file_offset = kev->file_offset,
		.len = kev->len,
		.path = path,
		.path_len = kev->path_len,
	};
	event->addr = kev->addr;
	event->mapping = mapping;
}

/* Where the word came first, whoever found it out knows already. */
static void apply_unseen(struct mt_order *order, const struct mt_kev_node *node)
{
	struct mt_process *process = mt_process_get(order, node->event.pid);

	if (process && !process->exited)
		process->unseen = true;
}

void mt_process_apply(struct mt_order *order, const struct mt_kev_node *node)
{
	switch (node->event.type) {
	case MT_KEV_FORK:
		apply_fork(order, node);
		break;
	case MT_KEV_EXEC:
		apply_exec(order, node);
		break;
	case MT_KEV_EXIT:
		apply_exit(order, node);
		break;
	case MT_KEV_THREAD_EXIT:
		apply_thread_exit(order, node);
		break;
	case MT_KEV_MAPPING:
		apply_mapping(order, node);
		break;
	case MT_KEV_UNSEEN:
		apply_unseen(order, node);
		break;
	}
}

/* Asks for the Exit of processes that are gone, where the kernel's word may not come. */
void mt_processes_check(struct mt_order *order)
{
	char path[32];

	if ((order->options.kernel_events && !order->kernel_lossy) ||
	    order->now_ns < order->checked_ns + CHECK_NS)
		return;
	order->checked_ns = order->now_ns;
	for (unsigned i = 0; i < MT_PROCESS_BUCKETS; i++) {
		struct mt_process *process = order->processes[i];

		for (; process; process = process->next) {
			if (process->exited || process->exit_asked)
				continue;
			snprintf(path, sizeof(path), "/proc/%d", (int)process->pid);
			if (access(path, F_OK) != 0)
				mt_pending_ask_exit(order, process->pid, 0, false);
		}
	}
}

void mt_processes_free(struct mt_order *order)
{
	for (unsigned i = 0; i < MT_PROCESS_BUCKETS; i++) {
		struct mt_process *process;

		while ((process = order->processes[i]) != NULL) {
			order->processes[i] = process->next;
			mt_space_end(&order->repair, process->space);
			free(process);
		}
	}
	free(order->records);
}
