/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's events wait here, in the order of their times, until the merge comes to them. What
 * the kernel does not tell (no kernel events, or some lost) is asked for: an event of our own is
 * put into the queue in its place.
 *
 * Gates. The streams of an image wait for its Exec, those of a forked child for its Fork. All that
 * a visible record depends on is in the kernel's rings before it, so the wait is for the merge to
 * get there, not for news; it is bounded all the same, since rings may lose.
 */
#include <stdlib.h>
#include <string.h>

#include "sidecar/order_impl.h"
#include "sidecar/pending.h"

/* Forks that are asked for in a round: each is compared with what is queued and what waits. */
#define FORKS_A_ROUND 64u
/* A Fork of ours waits this many times as long for that of the child's parent. */
#define PARENT_GATES 10u

/*
 * A further slot of a process that has one: its Fork was written, nothing is to come for this one.
 * A program that makes such slots could hold everybody's events up otherwise.
 */
static bool is_surplus(const struct mt_order *order, const struct mt_bind *bind)
{
	const struct mt_process *process = mt_process_find(order, bind->claim.pid);

	return process && !process->exited && process->image == bind->image && process->binds;
}

/* Is a stream of pid waiting for an event that comes before `node`? */
static bool has_closed_gate(const struct mt_order *order, int32_t pid,
			    const struct mt_kev_node *node)
{
	for (const struct mt_image *image = order->images; image; image = image->next)
		if (!image->attached && image->pid == pid && image != node->image &&
		    image->hello_ns < node->event.time_ns)
			return true;
	for (const struct mt_bind *bind = order->waiting; bind; bind = bind->next)
		if (!bind->root && bind->claim.pid == pid &&
		    bind->claim.claim_stamp < node->stamp && !is_surplus(order, bind) &&
		    !mt_process_is_others(order, pid, bind->image))
			return true;
	return false;
}

static bool is_drained(const struct mt_order *order, int32_t pid)
{
	const struct mt_process *process = mt_process_find(order, pid);

	for (const struct mt_bind *bind = process ? process->binds : NULL; bind; bind = bind->next)
		if (!bind->ended && !mt_bind_drained(bind))
			return false;
	return true;
}

static bool is_ready(const struct mt_order *order, const struct mt_kev_node *node)
{
	switch (node->event.type) {
	case MT_KEV_FORK:
		return !has_closed_gate(order, node->event.parent_pid, node);
	case MT_KEV_EXEC:
	case MT_KEV_EXIT:
		return !has_closed_gate(order, node->event.pid, node) &&
		       is_drained(order, node->event.pid);
	default:
		return true;
	}
}

static void open_binds(struct mt_order *order, int32_t pid, int32_t ns_pid);
static void ask_all_children(struct mt_order *order, int32_t pid);

bool mt_pending_apply(struct mt_order *order)
{
	struct mt_kev_node *node = order->kernel_head;
	struct mt_kev event;

	if (!is_ready(order, node)) {
		if (order->kernel_blocked_ns == 0) {
			order->kernel_blocked_ns = order->now_ns;
			order->kernel_blocked_round = order->round;
		}
		if (!order->forcing &&
		    (order->now_ns - order->kernel_blocked_ns < MT_BLOCKED_NS ||
		     order->round - order->kernel_blocked_round < MT_GATE_ROUNDS))
			return false;
	}
	order->kernel_blocked_ns = 0;
	mt_process_apply(order, node);
	event = node->event;
	mt_pending_remove_head(order);
	if (event.type == MT_KEV_EXEC)
		mt_gates_open(order);
	else if (event.type == MT_KEV_FORK)
		open_binds(order, event.pid, event.ns_pid);
	else if (event.type == MT_KEV_UNSEEN)
		ask_all_children(order, event.pid);
	return true;
}

static bool exec_is_queued(const struct mt_order *order, const struct mt_image *image)
{
	for (const struct mt_kev_node *node = order->kernel_head; node; node = node->next)
		if (node->event.type == MT_KEV_EXEC && node->event.pid == image->pid &&
		    node->event.time_ns <= image->hello_ns)
			return true;
	return false;
}

/* Has an image of the same process that came before it, since `exec_ns`, none yet? */
static bool is_preceded(const struct mt_order *order, const struct mt_image *image,
			uint64_t exec_ns)
{
	for (const struct mt_image *other = order->images; other; other = other->next)
		if (!other->attached && other->pid == image->pid &&
		    other->hello_ns < image->hello_ns && other->hello_ns >= exec_ns)
			return true;
	return false;
}

/* The image's Exec is the last of its pid before its hello, and newer than the image before it (one
 * that was asked for has the time of the hello of its own). */
static bool exec_was_written(const struct mt_order *order, const struct mt_image *image)
{
	const struct mt_process *process = mt_process_find(order, image->pid);

	return process && !process->exited && process->exec_ns != 0 &&
	       process->exec_ns <= image->hello_ns && process->exec_ns > process->image_ns &&
	       image->since_round < order->round && !exec_is_queued(order, image) &&
	       !is_preceded(order, image, process->exec_ns);
}

/* Processes without a slot, by the number that they have for themselves in another namespace. */
struct nested {
	struct mt_process *heads[256];
};

static struct mt_process **nested_head(struct nested *nested, int32_t ns_pid)
{
	return &nested->heads[(uint32_t)ns_pid % 256];
}

static void find_nested(const struct mt_order *order, struct nested *nested)
{
	memset(nested, 0, sizeof(*nested));
	for (unsigned i = 0; order->nested && i < MT_PROCESS_BUCKETS; i++) {
		struct mt_process *process = order->processes[i], **head;

		for (; process; process = process->next) {
			if (!process->image || process->binds || process->ns_pid == 0)
				continue;
			head = nested_head(nested, process->ns_pid);
			process->next_nested = *head;
			*head = process;
		}
	}
}

/* The process of a forked child's slot: it has the segment by inheritance and no slot yet. */
static struct mt_process *match_child(struct mt_order *order, const struct mt_bind *bind,
				      struct nested *nested)
{
	struct mt_process *process = mt_process_find(order, bind->claim.pid), *ended;

	if (process && process->exited && !bind->image->nested) {
		/* Noticed too late: nothing of it is read any more. */
		ended = mt_process_ended_after(
			order, bind->claim.pid,
			mt_clock_ns(&order->sink.clock, bind->claim.claim_stamp));
		if (ended)
			return ended;
	}
	if (process && process->image == bind->image && !process->binds &&
	    (process->ns_pid == 0 || process->ns_pid == bind->claim.pid))
		return process;
	process = *nested_head(nested, bind->claim.pid);
	for (; process; process = process->next_nested)
		if (process->image == bind->image && !process->binds &&
		    process->ns_pid == bind->claim.pid)
			return process;
	return NULL;
}

static struct mt_process *match(struct mt_order *order, const struct mt_bind *bind,
				struct nested *nested)
{
	if (!bind->root)
		return match_child(order, bind, nested);
	return bind->image->attached ? bind->image->process : NULL;
}

static uint64_t stamp_now_or_before(const struct mt_order *order, uint64_t stamp)
{
	return stamp < order->now_counter ? stamp : order->now_counter;
}

/* The slot that a child was forked from; NULL when it is unknown, or somebody else's by now. */
static const struct mt_bind *parent_of(const struct mt_bind *bind)
{
	const struct mt_image *image = bind->image;
	const struct mt_bind *parent = NULL;

	if (bind->claim.parent != 0 && bind->claim.parent <= image->consumer.shm.layout.proc_count)
		parent = image->binds[bind->claim.parent - 1];
	return parent && parent->claim.generation == bind->claim.parent_generation ? parent : NULL;
}

static int32_t parent_pid_of(const struct mt_bind *bind)
{
	const struct mt_bind *parent = parent_of(bind);

	return parent && parent->process ? parent->process->pid : bind->image->pid;
}

static void ask_fork(struct mt_order *order, struct mt_bind *bind)
{
	struct mt_kev event = { .type = MT_KEV_FORK, .ns_pid = bind->claim.pid };
	uint64_t stamp = stamp_now_or_before(order, bind->claim.claim_stamp);
	const struct mt_process *process;

	event.pid = mt_process_translate_pid(order, bind->image, bind->claim.pid);
	if (event.pid == 0) {
		order->sink.stats.untranslated_tids++;
		event.pid = bind->claim.pid;
	}
	bind->fork_asked = true;
	process = mt_process_find(order, event.pid);
	if (process && !process->exited && process->image == bind->image)
		return; /* it is there: another slot of the same process has it */
	event.tid = event.pid;
	event.parent_pid = parent_pid_of(bind);
	event.parent_tid = event.parent_pid;
	event.time_ns = mt_clock_ns(&order->sink.clock, stamp);
	mt_pending_add(order, &event, stamp, bind->image);
}

/* Without a marker, a child's place is where it first recorded: before what its parent did then. */
static void ask_children(struct mt_order *order, const struct mt_bind *parent)
{
	for (struct mt_bind *bind = order->waiting; bind; bind = bind->next)
		if (!bind->root && !bind->fork_asked && bind->claim.fork_number == 0 &&
		    parent_of(bind) == parent)
			ask_fork(order, bind);
}

static void ask_all_children(struct mt_order *order, int32_t pid)
{
	const struct mt_process *process = mt_process_find(order, pid);

	for (struct mt_bind *bind = process ? process->binds : NULL; bind; bind = bind->next)
		ask_children(order, bind);
}

/* Of the slots that wait, those that call themselves `pid` or `ns_pid`; 0: all. */
static void open_binds(struct mt_order *order, int32_t pid, int32_t ns_pid)
{
	struct mt_bind **at = &order->waiting, *bind;
	struct nested nested;

	find_nested(order, &nested);
	while ((bind = *at) != NULL) {
		struct mt_process *process = NULL;

		if (pid == 0 || bind->claim.pid == pid || bind->claim.pid == ns_pid)
			process = match(order, bind, &nested);
		if (!process) {
			at = &bind->next;
			continue;
		}
		*at = bind->next;
		mt_bind_leave_gate(order, bind);
		mt_bind_open(order, bind, process);
		if (!mt_process_is_told(order, process))
			ask_children(order, bind);
		if (process->exited)
			mt_bind_end(order, bind);
	}
}

void mt_gates_open(struct mt_order *order)
{
	for (struct mt_image *image = order->images; image; image = image->next) {
		struct mt_process *ended;

		if (image->attached)
			continue;
		/* A hello that nobody waited for any more: the sender was killed meanwhile. */
		ended = mt_process_ended_after(order, image->pid, image->hello_ns);
		if (ended)
			mt_process_abandon(ended, image);
		else if (exec_was_written(order, image))
			mt_process_attach(order, image);
	}
	open_binds(order, 0, 0);
}

static void ask_exec(struct mt_order *order, struct mt_image *image)
{
	struct mt_kev event = {
		.type = MT_KEV_EXEC,
		.pid = image->pid,
		.tid = image->pid,
		.time_ns = image->hello_ns,
	};
	struct mt_process *process = mt_process_find(order, image->pid);

	/* The kernel would have told of another process with the number of one that has ended. */
	if (process && process->exited && !image->root && order->options.kernel_events &&
	    !order->kernel_lossy) {
		mt_process_abandon(process, image);
		return;
	}
	image->exec_asked = true;
	mt_pending_add(order, &event,
		       stamp_now_or_before(
			       order, mt_clock_counter_at(&order->sink.clock, image->hello_ns)),
		       image);
}

/*
 * A child whose parent waits for its own Fork: whose child it is, and what it inherited, shows when
 * that is written. What the slots say may be wrong, so nobody waits so for ever.
 */
static bool parent_waits(const struct mt_order *order, const struct mt_bind *bind)
{
	const struct mt_bind *parent = parent_of(bind);

	return parent && !parent->process && !parent->root && !parent->refused && !order->frozen &&
	       bind->since_ns + PARENT_GATES * MT_GATE_NS > order->now_ns;
}

static bool fork_is_queued(const struct mt_order *order, const struct mt_bind *bind)
{
	for (const struct mt_kev_node *node = order->kernel_head; node; node = node->next)
		if (node->event.type == MT_KEV_FORK &&
		    (node->event.pid == bind->claim.pid || node->event.ns_pid == bind->claim.pid))
			return true;
	return false;
}

/* Slots that claim to be somebody else's process. Its own Fork or Exit may be on the way first. */
static void refuse_others(struct mt_order *order, uint64_t given_up)
{
	struct mt_bind **at = &order->waiting, *bind;

	while ((bind = *at) != NULL) {
		if (bind->root || !(order->finishing || bind->since_ns < given_up) ||
		    !mt_process_is_others(order, bind->claim.pid, bind->image)) {
			at = &bind->next;
			continue;
		}
		*at = bind->next;
		mt_bind_refuse(order, bind);
	}
}

/* Will nobody tell of its Exec? */
static bool exec_must_be_asked(const struct mt_order *order, const struct mt_image *image)
{
	const struct mt_process *process = mt_process_find(order, image->pid);

	/* Whoever registers without an exec of its own (manual use) says so. */
	if (!order->options.kernel_events || image->root)
		return true;
	if (image->since_round == order->round || exec_is_queued(order, image))
		return false;
	return order->finishing || (process && process->unseen && !process->exited) ||
	       (image->since_ns < order->now_ns - MT_GATE_NS &&
		image->since_round + MT_GATE_ROUNDS < order->round);
}

/* Is nothing told of the child, by the kernel or by a marker of its parent? */
static bool fork_must_be_asked(const struct mt_order *order, const struct mt_bind *bind)
{
	const struct mt_bind *parent = parent_of(bind);

	return bind->claim.fork_number == 0 &&
	       !mt_process_is_told(order, parent ? parent->process : NULL);
}

void mt_gates_check(struct mt_order *order)
{
	uint64_t given_up = order->now_ns - MT_GATE_NS;
	unsigned asked = 0;

	mt_gates_open(order);
	for (struct mt_image *image = order->images; image; image = image->next)
		if (!image->attached && !image->exec_asked && exec_must_be_asked(order, image))
			ask_exec(order, image);
	refuse_others(order, given_up);
	for (struct mt_bind *bind = order->waiting; bind && asked < FORKS_A_ROUND;
	     bind = bind->next) {
		if (bind->root || bind->fork_asked)
			continue;
		/* With a marker the parent's word comes when it is back from fork(). */
		if ((fork_must_be_asked(order, bind) || order->finishing ||
		     (bind->since_ns < given_up &&
		      bind->since_round + MT_GATE_ROUNDS < order->round)) &&
		    !parent_waits(order, bind) && !fork_is_queued(order, bind)) {
			ask_fork(order, bind);
			asked++;
		}
	}
}

/* A Fork whose time was guessed stands behind others in the queue that were later: it alone. */
static void apply_guessed(struct mt_order *order, struct mt_kev_node **at, uint64_t stamp)
{
	struct mt_kev_node *node = *at;

	if (at == &order->kernel_head)
		order->kernel_blocked_ns = 0;
	*at = node->next;
	if (!*at)
		order->kernel_tail = at;
	node->stamp = stamp;
	node->event.time_ns = mt_clock_ns(&order->sink.clock, stamp);
	mt_process_apply(order, node);
	open_binds(order, node->event.pid, node->event.ns_pid);
	free(node);
}

/* Applies the queue up to the Fork of a child that the parent's stream speaks of at `stamp`. */
static bool apply_up_to_fork(struct mt_order *order, int32_t parent_pid, int32_t pid,
			     uint64_t stamp)
{
	struct mt_kev_node **at = &order->kernel_head, *node;

	while ((node = *at) != NULL &&
	       !(node->event.type == MT_KEV_FORK && node->event.parent_pid == parent_pid &&
		 (node->event.pid == pid || node->event.ns_pid == pid)))
		at = &node->next;
	if (!node)
		return false;
	if (node->event.exec_flags & MT_EXEC_GUESSED) {
		apply_guessed(order, at, stamp);
		return true;
	}
	while (order->kernel_head != node)
		if (!mt_pending_apply(order))
			return true;
	mt_pending_apply(order);
	return true;
}

static void apply_now(struct mt_order *order, const struct mt_kev *event, uint64_t stamp,
		      struct mt_image *image)
{
	struct mt_kev_node node = { .event = *event, .stamp = stamp, .image = image };

	node.round = order->round;
	mt_process_apply(order, &node);
	mt_gates_open(order);
}

void mt_fork_done(struct mt_order *order, struct mt_reader *reader, const struct mt_rec *rec)
{
	const struct mt_process *parent = reader->bind->process, *child;
	struct mt_kev event = { .type = MT_KEV_FORK, .ns_pid = (int32_t)(rec->size_kind >> 8) };

	if (event.ns_pid <= 0 || apply_up_to_fork(order, parent->pid, event.ns_pid, rec->stamp))
		return;
	if (mt_process_is_told(order, parent))
		return;
	event.pid = mt_process_translate_pid(order, reader->bind->image, event.ns_pid);
	if (event.pid == 0 || /* gone before we could ask: its slot, if it has one, says more */
	    mt_process_is_others(order, event.pid, reader->bind->image))
		return;
	child = mt_process_find(order, event.pid);
	if (child && !child->exited && child->parent_pid == parent->pid)
		return;
	event.tid = event.pid;
	event.parent_pid = parent->pid;
	event.parent_tid = reader->origin.tid;
	event.time_ns = mt_clock_ns(&order->sink.clock, rec->stamp);
	apply_now(order, &event, rec->stamp, reader->bind->image);
}

void mt_pending_ask_exit(struct mt_order *order, int32_t pid, int status, bool status_known)
{
	struct mt_kev event = { .type = MT_KEV_EXIT, .pid = pid, .tid = pid };
	struct mt_process *process = mt_process_get(order, pid);

	if (!process || process->exited)
		return;
	if (status_known) {
		mt_process_record(order, process)->exit_status = status;
		mt_process_record(order, process)->status_known = true;
	}
	if (process->exit_asked)
		return;
	process->exit_asked = true;
	event.time_ns = mt_clock_monotonic_ns();
	mt_pending_add(order, &event, mt_clock_read(order->options.counter), NULL);
}
