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
#include "sidecar/pidns.h"
#include "sidecar/process.h"

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
	const struct mt_process *process = mt_process_find(order, mt_pidns_number(bind));

	return process && !process->exited && process->image == bind->image && process->binds;
}

static bool fork_is_queued(const struct mt_order *order, const struct mt_bind *bind)
{
	int32_t pid = mt_pidns_number(bind);

	for (const struct mt_kev_node *node = order->kernel_head; node; node = node->next)
		if (node->event.type == MT_KEV_FORK &&
		    (node->event.pid == pid || node->event.ns_pid == bind->claim.pid))
			return true;
	return false;
}

/* The parent's process, when it was killed before it came back from fork(). */
static struct mt_process *silent_parent(const struct mt_order *order, const struct mt_bind *bind)
{
	const struct mt_bind *parent = mt_pidns_parent(bind);

	if (!parent || !parent->process || parent->ended ||
	    mt_process_is_told(order, parent->process) ||
	    !mt_process_is_silent(order, parent->process))
		return NULL;
	return parent->process;
}

/* Does a child that was forked from its memory wait for a Fork that nobody has told of yet? */
static bool has_untold_child(const struct mt_order *order, const struct mt_process *process)
{
	if (mt_process_is_told(order, process))
		return false;
	for (const struct mt_bind *bind = order->waiting; bind; bind = bind->next) {
		const struct mt_bind *parent = mt_pidns_parent(bind);

		if (!bind->root && !bind->fork_asked && parent && !parent->ended &&
		    parent->process == process && !is_surplus(order, bind) &&
		    !mt_process_is_others(order, mt_pidns_number(bind), bind->image))
			return true;
	}
	return false;
}

/* Is a stream of pid waiting for an event that comes before `node`? */
static bool has_closed_gate(const struct mt_order *order, int32_t pid,
			    const struct mt_kev_node *node)
{
	const struct mt_process *process = mt_process_find(order, pid);

	for (const struct mt_image *image = order->images; image; image = image->next)
		if (!image->attached && image->pid == pid && image != node->image &&
		    image->hello_ns < node->event.time_ns)
			return true;
	for (const struct mt_bind *bind = order->waiting; bind; bind = bind->next) {
		if (bind->root || bind->claim.claim_stamp >= node->stamp)
			continue;
		if (mt_pidns_number(bind) == pid && !is_surplus(order, bind) &&
		    !mt_process_is_others(order, pid, bind->image))
			return true;
		/* Its parent has not said yet what it calls it. */
		if (mt_pidns_may_be(order, process, bind) && !fork_is_queued(order, bind))
			return true;
	}
	return false;
}

/* Is all read of its memory, and written what it began? */
static bool is_done_with(const struct mt_order *order, int32_t pid)
{
	const struct mt_process *process = mt_process_find(order, pid);

	return !process || process->exited ||
	       (mt_process_is_drained(process) && !has_untold_child(order, process));
}

static bool is_ready(const struct mt_order *order, const struct mt_kev_node *node)
{
	switch (node->event.type) {
	case MT_KEV_FORK:
		return !has_closed_gate(order, node->event.parent_pid, node);
	case MT_KEV_EXEC:
	case MT_KEV_EXIT:
		return !has_closed_gate(order, node->event.pid, node) &&
		       is_done_with(order, node->event.pid);
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

static struct mt_process *match(struct mt_order *order, struct mt_bind *bind,
				const struct mt_pidns_slotless *slotless)
{
	if (!bind->root)
		mt_pidns_hear(order, bind);
	if (!bind->root)
		return mt_pidns_match(order, bind, slotless);
	return bind->image->attached ? bind->image->process : NULL;
}

static uint64_t stamp_now_or_before(const struct mt_order *order, uint64_t stamp)
{
	return stamp < order->now_counter ? stamp : order->now_counter;
}

static void ask_fork(struct mt_order *order, struct mt_bind *bind)
{
	struct mt_kev event = { .type = MT_KEV_FORK, .ns_pid = bind->claim.pid };
	uint64_t stamp = stamp_now_or_before(order, bind->claim.claim_stamp);
	const struct mt_process *process = silent_parent(order, bind);

	/* A child that was slow to claim its slot comes before its parent's end all the same. */
	if (process && process->over_stamp > 0 && stamp >= process->over_stamp)
		stamp = process->over_stamp - 1;
	if (bind->pid == 0)
		bind->pid = mt_pidns_find(order, bind);
	if (bind->pid == 0)
		return; /* it is asked for again, until it is given up */
	event.pid = bind->pid;
	bind->fork_asked = true;
	process = mt_process_find(order, event.pid);
	if (process && !process->exited && process->image == bind->image)
		return; /* it is there: another slot of the same process has it */
	event.tid = event.pid;
	event.parent_pid = mt_pidns_parent_pid(bind);
	event.parent_tid = event.parent_pid;
	event.time_ns = mt_clock_ns(&order->sink.clock, stamp);
	mt_pending_add(order, &event, stamp, bind->image);
}

/* Without a marker, a child's place is where it first recorded: before what its parent did then. */
static void ask_children(struct mt_order *order, const struct mt_bind *parent)
{
	for (struct mt_bind *bind = order->waiting; bind; bind = bind->next)
		if (!bind->root && !bind->fork_asked && bind->claim.fork_number == 0 &&
		    mt_pidns_parent(bind) == parent)
			ask_fork(order, bind);
}

static void note_children(const struct mt_order *order, const struct mt_bind *parent)
{
	for (struct mt_bind *bind = order->waiting; bind; bind = bind->next)
		if (mt_pidns_parent(bind) == parent)
			mt_pidns_note_parent(bind);
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
	struct mt_pidns_slotless slotless;

	mt_pidns_find_slotless(order, &slotless);
	while ((bind = *at) != NULL) {
		struct mt_process *process = NULL;

		if (pid == 0 || mt_pidns_number(bind) == pid || bind->claim.pid == ns_pid)
			process = match(order, bind, &slotless);
		if (!process) {
			at = &bind->next;
			continue;
		}
		*at = bind->next;
		mt_bind_leave_gate(order, bind);
		mt_bind_open(order, bind, process);
		note_children(order, bind);
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
	uint64_t stamp;

	/* The kernel would have told of another process with the number of one that has ended. */
	if (process && process->exited && !image->root && order->options.kernel_events &&
	    !order->kernel_lossy) {
		mt_process_abandon(process, image);
		return;
	}
	image->exec_asked = true;
	stamp = stamp_now_or_before(order,
				    mt_clock_counter_at(&order->sink.clock, image->hello_ns));
	if (process)
		mt_process_begin_end(order, process, stamp);
	mt_pending_add(order, &event, stamp, image);
}

/*
 * A child whose parent waits for its own Fork: whose child it is, and what it inherited, shows when
 * that is written. What the slots say may be wrong, so nobody waits so for ever.
 */
static bool parent_waits(const struct mt_order *order, const struct mt_bind *bind)
{
	const struct mt_bind *parent = mt_pidns_parent(bind);

	return parent && !parent->process && !parent->root && !parent->refused && !order->frozen &&
	       bind->since_ns + PARENT_GATES * MT_GATE_NS > order->now_ns;
}

/* Slots that claim to be somebody else's process. Its own Fork or Exit may be on the way first. */
static void refuse_others(struct mt_order *order, uint64_t given_up)
{
	struct mt_bind **at = &order->waiting, *bind;

	while ((bind = *at) != NULL) {
		if (bind->root || !(order->finishing || bind->since_ns < given_up) ||
		    !mt_process_is_others(order, mt_pidns_number(bind), bind->image)) {
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
	const struct mt_bind *parent = mt_pidns_parent(bind);

	return bind->claim.fork_number == 0 &&
	       !mt_process_is_told(order, parent ? parent->process : NULL);
}

/* Whose process it is does not show by itself, and the process may be gone soon. */
static bool must_be_found(const struct mt_order *order, const struct mt_bind *bind)
{
	const struct mt_process *namesake;

	if (bind->pid != 0 || (order->options.kernel_events && !order->lacks_numbers) ||
	    (bind->claim.fork_number != 0 && !bind->foreign))
		return false;
	namesake = mt_process_find(order, bind->claim.pid);
	return !(namesake && namesake->image == bind->image) && !fork_is_queued(order, bind);
}

static bool gate_is_given_up(const struct mt_order *order, const struct mt_bind *bind)
{
	return order->finishing || (bind->since_ns < order->now_ns - MT_GATE_NS &&
				    bind->since_round + MT_GATE_ROUNDS < order->round);
}

/* Looking for it takes long: it is done in this round and after twice as many each time. */
static bool is_its_turn(const struct mt_order *order, const struct mt_bind *bind)
{
	uint64_t rounds = order->round - bind->since_round;

	return bind->pid != 0 || (rounds & (rounds - 1)) == 0;
}

/* Returns false when nobody knows any more which process the slot was of. */
static bool check_gate(struct mt_order *order, struct mt_bind *bind, unsigned *asked)
{
	bool given_up = gate_is_given_up(order, bind), orphaned;

	if (bind->root)
		return true;
	mt_pidns_note_parent(bind);
	orphaned = silent_parent(order, bind) != NULL;
	if (bind->fork_asked || *asked >= FORKS_A_ROUND || parent_waits(order, bind))
		return true;
	if (!given_up && !orphaned && !is_its_turn(order, bind))
		return true;
	/* With a marker the parent's word comes when it is back from fork(), unless it is killed.
	 */
	if (orphaned ||
	    ((given_up || fork_must_be_asked(order, bind)) && !fork_is_queued(order, bind))) {
		ask_fork(order, bind);
		++*asked;
		/* While the last streams are read, its parent may say it yet. */
		return bind->pid != 0 || !given_up || (order->finishing && !order->forcing);
	}
	if (must_be_found(order, bind)) {
		bind->pid = mt_pidns_find(order, bind);
		++*asked;
	}
	return true;
}

void mt_gates_check(struct mt_order *order)
{
	struct mt_bind **at = &order->waiting, *bind;
	unsigned asked = 0;

	mt_gates_open(order);
	for (struct mt_image *image = order->images; image; image = image->next)
		if (!image->attached && !image->exec_asked && exec_must_be_asked(order, image))
			ask_exec(order, image);
	refuse_others(order, order->now_ns - MT_GATE_NS);
	while ((bind = *at) != NULL) {
		if (check_gate(order, bind, &asked)) {
			at = &bind->next;
			continue;
		}
		*at = bind->next;
		mt_bind_lose(order, bind);
	}
	if (asked > 0)
		mt_gates_open(order);
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

/* Of a Fork that does not say what the child calls itself: did this thread's fork() make it? */
static bool is_fork_of(const struct mt_kev_node *node, const struct mt_reader *reader,
		       uint64_t stamp)
{
	return node->event.ns_pid == 0 && node->birth.number == 0 && node->stamp <= stamp &&
	       node->event.parent_tid == reader->origin.tid &&
	       reader->bind->claim.pid != reader->bind->process->pid;
}

/* The Fork in the queue that the parent's stream speaks of at `stamp`; NULL: it is not there. */
static struct mt_kev_node **find_fork(struct mt_order *order, const struct mt_reader *reader,
				      int32_t pid, uint64_t stamp)
{
	struct mt_kev_node **found = NULL, **at;

	for (at = &order->kernel_head; *at; at = &(*at)->next) {
		const struct mt_kev *event = &(*at)->event;

		if (event->type != MT_KEV_FORK || event->parent_pid != reader->bind->process->pid)
			continue;
		if (event->pid == pid || event->ns_pid == pid)
			return at;
		if (is_fork_of(*at, reader, stamp))
			found = at;
	}
	return found;
}

/* Applies the queue up to that Fork. */
static void apply_up_to_fork(struct mt_order *order, struct mt_kev_node **at, uint64_t stamp)
{
	const struct mt_kev_node *node = *at;

	if (node->event.exec_flags & MT_EXEC_GUESSED) {
		apply_guessed(order, at, stamp);
		return;
	}
	while (order->kernel_head != node)
		if (!mt_pending_apply(order))
			return;
	mt_pending_apply(order);
}

static void apply_now(struct mt_order *order, const struct mt_kev *event, uint64_t stamp,
		      struct mt_image *image, const struct mt_birth *birth)
{
	struct mt_kev_node node = {
		.event = *event, .stamp = stamp, .image = image, .birth = *birth
	};

	node.round = order->round;
	mt_process_apply(order, &node);
	mt_gates_open(order);
}

/* The child that the thread calls `ns_pid`, as we see it, when no Fork of it is in the queue. */
static int32_t child_of(struct mt_order *order, const struct mt_reader *reader,
			const struct mt_bind *slot, int32_t ns_pid, uint64_t stamp)
{
	const struct mt_process *parent = reader->bind->process;

	if (parent->pid == reader->bind->claim.pid)
		return ns_pid;
	if (slot && slot->pid != 0)
		return slot->pid;
	if (mt_process_is_told(order, parent))
		return mt_pidns_newest_child(order, parent, reader->origin.tid, stamp);
	return mt_pidns_child(order, parent->pid, ns_pid);
}

void mt_fork_done(struct mt_order *order, struct mt_reader *reader, const struct mt_rec *rec)
{
	const struct mt_process *parent = reader->bind->process;
	const struct mt_birth birth = { rec->addr, reader->bind->claim.slot + 1,
					reader->bind->claim.generation };
	struct mt_kev event = { .type = MT_KEV_FORK, .ns_pid = (int32_t)(rec->size_kind >> 8) };
	struct mt_process *child;
	struct mt_kev_node **at;
	struct mt_bind *slot;

	if (event.ns_pid <= 0)
		return;
	slot = mt_pidns_slot(order, reader->bind->image, &birth);
	at = find_fork(order, reader, event.ns_pid, rec->stamp);
	event.pid = at ? (*at)->event.pid : child_of(order, reader, slot, event.ns_pid, rec->stamp);
	/* What the child calls itself is told, and may be what its parent calls another. */
	if (at && (*at)->event.pid != event.ns_pid && (*at)->event.ns_pid != 0) {
		apply_up_to_fork(order, at, rec->stamp);
		return;
	}
	if (slot && slot->pid == 0)
		slot->pid = event.pid;
	if (at) {
		(*at)->birth = birth;
		apply_up_to_fork(order, at, rec->stamp);
		return;
	}
	if (event.pid == 0) /* gone before we could ask: its slot, if it has one, says more */
		return;
	child = mt_process_find(order, event.pid);
	if (child && !child->exited && child->parent_pid == parent->pid) {
		if (child->image == reader->bind->image) /* else it has executed another */
			mt_pidns_tell(order, child, &birth);
		if (slot)
			mt_gates_open(order);
		return;
	}
	if (mt_process_is_told(order, parent) ||
	    mt_process_is_others(order, event.pid, reader->bind->image))
		return;
	event.tid = event.pid;
	event.parent_pid = parent->pid;
	event.parent_tid = reader->origin.tid;
	event.time_ns = mt_clock_ns(&order->sink.clock, rec->stamp);
	apply_now(order, &event, rec->stamp, reader->bind->image, &birth);
}

void mt_pending_ask_exit(struct mt_order *order, int32_t pid, int status, bool status_known)
{
	struct mt_kev event = { .type = MT_KEV_EXIT, .pid = pid, .tid = pid };
	struct mt_process *process = mt_process_get(order, pid);
	uint64_t stamp;

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
	stamp = mt_clock_read(order->options.counter);
	mt_process_begin_end(order, process, stamp);
	mt_pending_add(order, &event, stamp, NULL);
}
