/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/pidns.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sidecar/process.h"

#define LOOKUPS_ROUND_NS UINT64_C(20000000)
#define LEVELS_MAX	 32 /* the kernel's own bound on namespaces within each other */

/* What /proc says of a task: its numbers from our namespace inwards. */
struct status {
	int32_t parent_pid;
	int32_t numbers[LEVELS_MAX + 1];
	unsigned levels;
};

static void read_numbers(struct status *status, const char *at)
{
	char *end;

	for (; status->levels <= LEVELS_MAX; at = end) {
		long value = strtol(at, &end, 10);

		if (end == at)
			return;
		status->numbers[status->levels++] = (int32_t)value;
	}
}

static bool read_status(const char *path, struct status *ret_status)
{
	char line[512];
	FILE *file = fopen(path, "re");

	*ret_status = (struct status){ 0 };
	if (!file)
		return false;
	while (ret_status->levels == 0 && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "PPid:", 5) == 0)
			ret_status->parent_pid = (int32_t)strtol(line + 5, NULL, 10);
		else if (strncmp(line, "NSpid:", 6) == 0)
			read_numbers(ret_status, line + 6);
	}
	fclose(file);
	return ret_status->levels != 0;
}

static bool read_process(int32_t pid, struct status *ret_status)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return read_status(path, ret_status);
}

/* What is looked for. */
struct wanted {
	int32_t number;
	int32_t parent_pid; /* 0: anybody's */
	unsigned level;	    /* at which it has the number; 0: at its own, the last one */
	unsigned levels;    /* that it has at least */
};

static bool is_wanted(const struct wanted *wanted, const struct status *status)
{
	unsigned level = wanted->level != 0 ? wanted->level : status->levels;

	return level <= status->levels && wanted->levels <= status->levels &&
	       status->numbers[level - 1] == wanted->number &&
	       (wanted->parent_pid == 0 || wanted->parent_pid == status->parent_pid);
}

/* Looks in a folder of tasks. Two that fit are none: which of them it is, nobody can tell. */
static int32_t find_in_proc(const char *folder, const struct wanted *wanted)
{
	char path[320];
	struct dirent *entry;
	struct status status;
	int32_t found = 0;
	DIR *dir = opendir(folder);

	if (!dir)
		return 0;
	while (found >= 0 && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/%s/status", folder, entry->d_name);
		if (read_status(path, &status) && is_wanted(wanted, &status))
			found = found != 0 ? -1 : atoi(entry->d_name);
	}
	closedir(dir);
	return found > 0 ? found : 0;
}

/* A program can make up as many numbers as it has slots, and each search takes long. */
static bool may_look_up(struct mt_order *order)
{
	uint64_t now = mt_clock_monotonic_ns();

	if (order->lookup_round != order->round) {
		order->lookup_round = order->round;
		order->lookup_ns = now;
	}
	return now - order->lookup_ns < LOOKUPS_ROUND_NS;
}

int32_t mt_pidns_tid(struct mt_order *order, int32_t pid, int32_t ns_tid)
{
	const struct wanted wanted = { .number = ns_tid };
	char folder[64];

	if (!may_look_up(order))
		return 0;
	snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
	return find_in_proc(folder, &wanted);
}

int32_t mt_pidns_child(struct mt_order *order, int32_t parent_pid, int32_t ns_pid)
{
	struct wanted wanted = { .number = ns_pid, .parent_pid = parent_pid };
	struct status parent;

	if (!may_look_up(order) || !read_process(parent_pid, &parent))
		return 0;
	wanted.level = parent.levels;
	return find_in_proc("/proc", &wanted);
}

const struct mt_bind *mt_pidns_parent(const struct mt_bind *bind)
{
	const struct mt_image *image = bind->image;
	const struct mt_bind *parent = NULL;

	if (bind->claim.parent != 0 && bind->claim.parent <= image->consumer.shm.layout.proc_count)
		parent = image->binds[bind->claim.parent - 1];
	return parent && parent->claim.generation == bind->claim.parent_generation ? parent : NULL;
}

void mt_pidns_note_parent(struct mt_bind *bind)
{
	const struct mt_bind *parent = mt_pidns_parent(bind);

	/* Our own 1 is nobody's child. Whose parent is not known may be of any namespace. */
	if (bind->image->nested || bind->claim.pid == 1 ||
	    (parent ? parent->foreign : bind->parent_pid == 0 && bind->image->has_foreign))
		bind->foreign = true;
	if (bind->parent_pid == 0 && parent && parent->process) {
		bind->parent_pid = parent->process->pid;
		bind->foreign = bind->foreign || parent->process->pid != parent->claim.pid;
	}
	bind->image->has_foreign = bind->image->has_foreign || bind->foreign;
}

static struct mt_process **told_head(struct mt_order *order, const struct mt_birth *birth)
{
	/* Numbers of forks are whole pages. */
	return &order->told[(uint32_t)(birth->number / 4096 + birth->slot) % MT_TOLD_BUCKETS];
}

static bool is_birth_of(const struct mt_birth *birth, const struct mt_proc_claim *claim)
{
	return birth->number == claim->fork_number && birth->slot == claim->parent &&
	       birth->generation == claim->parent_generation;
}

/* Those that have a slot by now, or no use for one any more, go. */
static void forget_told(struct mt_process **at)
{
	struct mt_process *process;

	while ((process = *at) != NULL) {
		if (process->exited || process->binds || !process->image)
			*at = process->next_told;
		else
			at = &process->next_told;
	}
}

void mt_pidns_tell(struct mt_order *order, struct mt_process *process, const struct mt_birth *birth)
{
	struct mt_process **head = told_head(order, birth);

	if (process->birth.number != 0 || process->binds || process->exited)
		return;
	forget_told(head);
	process->birth = *birth;
	process->next_told = *head;
	*head = process;
}

struct mt_bind *mt_pidns_slot(const struct mt_order *order, const struct mt_image *image,
			      const struct mt_birth *birth)
{
	struct mt_bind *bind = order->waiting;

	while (bind && (bind->image != image || bind->root || !is_birth_of(birth, &bind->claim)))
		bind = bind->next;
	return bind;
}

void mt_pidns_hear(struct mt_order *order, struct mt_bind *bind)
{
	const struct mt_birth birth = { bind->claim.fork_number, bind->claim.parent,
					bind->claim.parent_generation };
	const struct mt_process *process;

	if (bind->pid != 0 || birth.number == 0)
		return;
	process = *told_head(order, &birth);
	while (process &&
	       (process->image != bind->image || !is_birth_of(&process->birth, &bind->claim)))
		process = process->next_told;
	if (process)
		bind->pid = process->pid;
}

int32_t mt_pidns_newest_child(const struct mt_order *order, const struct mt_process *parent,
			      int32_t parent_tid, uint64_t stamp)
{
	const struct mt_process *child = parent->newest_child;

	/* Whose Fork was lost is not there. */
	if (!order->lacks_numbers || order->kernel_lossy)
		return 0;
	while (child && (child->parent_tid != parent_tid || child->fork_stamp > stamp))
		child = child->older_sibling;
	return child && child->birth.number == 0 ? child->pid : 0;
}

bool mt_pidns_may_be(const struct mt_order *order, const struct mt_process *process,
		     const struct mt_bind *bind)
{
	const struct mt_bind *parent;
	const struct mt_process *namesake;

	if (!process || process->image != bind->image || process->binds || process->exited ||
	    bind->root || bind->pid != 0 || process->ns_pid != 0 || process->birth.number != 0 ||
	    process->fork_stamp > bind->claim.claim_stamp)
		return false;
	parent = mt_pidns_parent(bind);
	if (!parent || !parent->process || parent->process->pid != process->parent_pid)
		return false;
	namesake = mt_process_find(order, bind->claim.pid);
	return !namesake || namesake == process || namesake->image != bind->image;
}

/* The only child of its parent that it can be, when the kernel has told of all of them. */
static int32_t find_only_child(const struct mt_order *order, const struct mt_bind *bind)
{
	const struct mt_bind *parent = mt_pidns_parent(bind);
	const struct mt_process *found = NULL, *child;

	if (!order->options.kernel_events || !order->lacks_numbers || order->kernel_lossy ||
	    !parent || !parent->process)
		return 0;
	for (const struct mt_kev_node *node = order->kernel_head; node; node = node->next)
		if (node->event.type == MT_KEV_FORK && node->birth.number == 0 &&
		    node->event.parent_pid == parent->process->pid)
			return 0; /* it may be this one yet */
	for (child = parent->process->newest_child; child; child = child->older_sibling) {
		if (!mt_pidns_may_be(order, child, bind))
			continue;
		if (found)
			return 0;
		found = child;
	}
	return found ? found->pid : 0;
}

/* Are the two in one PID namespace? */
static bool is_neighbour(int32_t pid, int32_t other)
{
	char path[64], name[64], other_name[64];
	ssize_t length, other_length;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	length = readlink(path, name, sizeof(name));
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)other);
	other_length = readlink(path, other_name, sizeof(other_name));
	return length > 0 && length == other_length &&
	       memcmp(name, other_name, (size_t)length) == 0;
}

/* Somebody else has the number: children of a living process have it, or its parent, for parent. */
static bool is_taken(const struct wanted *wanted, const struct status *status)
{
	struct status parent;

	return status->levels != 0 && read_process(wanted->parent_pid, &parent) &&
	       status->parent_pid != wanted->parent_pid && status->parent_pid != parent.parent_pid;
}

/* Somewhere in the namespace of its image, without a slot so far. */
static int32_t find_orphan(struct mt_order *order, const struct mt_bind *bind)
{
	const struct wanted wanted = { .number = bind->claim.pid, .levels = 2 };
	int32_t pid = find_in_proc("/proc", &wanted);
	const struct mt_process *process = mt_process_find(order, pid);

	if (pid == 0 || !is_neighbour(pid, bind->image->pid) || (process && process->binds) ||
	    mt_process_is_others(order, pid, bind->image))
		return 0;
	return pid;
}

/* Is its parent over? Whoever lives of its children is another's by now. */
static bool is_orphan(const struct mt_bind *bind)
{
	const struct mt_bind *parent = mt_pidns_parent(bind);
	struct status status;

	return (parent && parent->process && parent->process->exit_asked) ||
	       !read_process(mt_pidns_parent_pid(bind), &status);
}

int32_t mt_pidns_find(struct mt_order *order, const struct mt_bind *bind)
{
	struct wanted wanted = { .number = bind->claim.pid };
	struct status status = { 0 };
	bool orphan;
	int32_t pid;

	wanted.parent_pid = mt_pidns_parent_pid(bind);
	if (!may_look_up(order))
		return 0;
	orphan = is_orphan(bind);
	wanted.levels = bind->foreign ? 2 : 1;
	if (!bind->foreign && read_process(wanted.number, &status) && is_wanted(&wanted, &status))
		return wanted.number;
	pid = orphan ? 0 : find_in_proc("/proc", &wanted);
	if (pid == 0)
		pid = find_only_child(order, bind);
	if (pid == 0 && bind->image->nested && orphan)
		pid = find_orphan(order, bind);
	if (pid == 0 && !bind->foreign && (orphan || !is_taken(&wanted, &status)))
		pid = wanted.number;
	return pid;
}

static struct mt_process **head_of(struct mt_pidns_slotless *slotless, int32_t ns_pid)
{
	return &slotless->heads[(uint32_t)ns_pid % MT_PIDNS_HEADS];
}

void mt_pidns_find_slotless(const struct mt_order *order, struct mt_pidns_slotless *ret_slotless)
{
	memset(ret_slotless, 0, sizeof(*ret_slotless));
	for (unsigned i = 0; order->nested && i < MT_PROCESS_BUCKETS; i++) {
		struct mt_process *process = order->processes[i], **head;

		for (; process; process = process->next) {
			if (!process->image || process->binds || process->ns_pid == 0)
				continue;
			head = head_of(ret_slotless, process->ns_pid);
			process->next_nested = *head;
			*head = process;
		}
	}
}

/* Many namespaces have the same numbers, so the parent has to be the right one, once it is known.
 */
static bool may_be_parent(struct mt_bind *bind, const struct mt_process *child)
{
	const struct mt_bind *parent = mt_pidns_parent(bind);

	mt_pidns_note_parent(bind);
	if (bind->claim.fork_number == 0)
		return true;
	if (bind->parent_pid != 0)
		return bind->parent_pid == child->parent_pid;
	return !parent || parent->refused;
}

struct mt_process *mt_pidns_match(struct mt_order *order, struct mt_bind *bind,
				  const struct mt_pidns_slotless *slotless)
{
	struct mt_process *process = mt_process_find(order, mt_pidns_number(bind)), *ended;

	if (process && process->exited && (bind->pid != 0 || !bind->image->nested)) {
		/* Noticed too late: nothing of it is read any more. */
		ended = mt_process_ended_after(
			order, process->pid,
			mt_clock_ns(&order->sink.clock, bind->claim.claim_stamp));
		if (ended)
			return ended;
	}
	if (process && process->image == bind->image && !process->binds &&
	    (bind->pid != 0 || process->ns_pid == 0 || process->ns_pid == bind->claim.pid))
		return process;
	if (bind->pid != 0)
		return NULL;
	process = slotless->heads[(uint32_t)bind->claim.pid % MT_PIDNS_HEADS];
	for (; process; process = process->next_nested)
		if (process->image == bind->image && !process->binds &&
		    process->ns_pid == bind->claim.pid && may_be_parent(bind, process))
			return process;
	return NULL;
}
