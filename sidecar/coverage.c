/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/coverage.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "sidecar/patience.h"
#include "sidecar/session.h"

#define BUCKETS	      4096
#define HELLOS_MAX    16
#define UNTRACKED_MAX 1000
/* Files looked at again at the end for a better reason than the kernel could give. */
#define LOOKS_MAX 64
/* A kernel whose exit records got lost must not make the table grow for ever. */
#define PROCESSES_MAX 200000

/* The program and its loader: what the kernel itself maps. All else the loader maps later. */
#define KERNEL_MAPPINGS 2
/* Loading our library takes a few ms. This holds on a busy machine too. */
#define LOAD_NS	      UINT64_C(1000000000)
#define LOAD_SHORT_NS UINT64_C(100000000) /* when it is not known that it was killed */

struct process {
	struct process *next; /* in its bucket */
	pid_t pid;
	bool seen;	/* the kernel told of it: it counts as alive */
	bool has_exec;	/* the fields below are of its last exec */
	bool explained; /* by what the kernel cannot see */
	bool unseen;	/* images of it may come and go that the kernel does not tell of */
	enum mt_untracked_reason reason;
	uint64_t explained_ns; /* of the image that runs at that time; 0: that runs now */
	uint64_t exec_ns;
	uint32_t exec_flags;
	uint32_t mappings;   /* executable ones since */
	bool library_mapped; /* ours is among them */
	char *path;
	/* Hellos come by another way than the kernel's events and may be ahead of them. */
	int hello_count;
	uint64_t hellos[HELLOS_MAX];
};

struct mt_coverage {
	pthread_mutex_t lock;
	bool known;
	size_t process_count;
	size_t alive;
	size_t listed;
	struct mt_coverage_totals totals;
	/* The list, and behind it the last ones that had no room there: hellos may come late. */
	struct mt_untracked untracked[2 * UNTRACKED_MAX];
	size_t unlisted; /* so far; they have no path */
	struct process *buckets[BUCKETS];
};

struct mt_coverage *mt_coverage_new(bool known)
{
	struct mt_coverage *coverage = calloc(1, sizeof(*coverage));

	if (!coverage)
		return NULL;
	pthread_mutex_init(&coverage->lock, NULL);
	coverage->known = known;
	coverage->totals.known = known;
	return coverage;
}

static void free_process(struct process *process)
{
	free(process->path);
	free(process);
}

void mt_coverage_free(struct mt_coverage *coverage)
{
	size_t i;

	if (!coverage)
		return;
	for (i = 0; i < BUCKETS; i++) {
		while (coverage->buckets[i]) {
			struct process *process = coverage->buckets[i];

			coverage->buckets[i] = process->next;
			free_process(process);
		}
	}
	for (i = 0; i < coverage->listed; i++)
		free(coverage->untracked[i].path);
	pthread_mutex_destroy(&coverage->lock);
	free(coverage);
}

static struct process **find_place(struct mt_coverage *coverage, pid_t pid)
{
	struct process **place = &coverage->buckets[(uint32_t)pid % BUCKETS];

	while (*place && (*place)->pid != pid)
		place = &(*place)->next;
	return place;
}

static struct process *find(struct mt_coverage *coverage, pid_t pid)
{
	return *find_place(coverage, pid);
}

static struct process *find_or_add(struct mt_coverage *coverage, pid_t pid)
{
	struct process **place = find_place(coverage, pid);

	if (*place)
		return *place;
	if (coverage->process_count < PROCESSES_MAX) {
		*place = mt_patient_calloc(1, sizeof(**place));
		if (*place) {
			(*place)->pid = pid;
			coverage->process_count++;
		}
	}
	/* What that one does is not seen, so the list may lack it, or have it wrongly. */
	if (!*place)
		coverage->totals.known = false;
	return *place;
}

static void mark_seen(struct mt_coverage *coverage, struct process *process)
{
	if (process && !process->seen) {
		process->seen = true;
		coverage->alive++;
	}
}

static void count(struct mt_coverage *coverage, enum mt_untracked_reason reason, bool more)
{
	uint64_t *total = mt_untracked_is_not_loaded(reason) ? &coverage->totals.not_loaded
							     : &coverage->totals.untracked;

	*total += more ? 1 : UINT64_MAX;
	coverage->totals.by_reason[reason] += more ? 1 : UINT64_MAX;
}

/*
 * May its loader have been at work still? A library other than ours, which comes first, says no: it
 * runs without us. Where the kernel has no flags, the program and its loader must have been seen,
 * or nothing tells a static program.
 */
static bool may_be_loading(const struct process *process)
{
	if (process->library_mapped)
		return true;
	return process->exec_flags & MT_EXEC_KNOWN ? process->mappings <= KERNEL_MAPPINGS
						   : process->mappings == KERNEL_MAPPINGS;
}

/* A program that ends by itself has been loaded before, so only a kill excuses it. */
static bool was_killed_early(const struct process *process, const struct mt_kev *exit)
{
	uint64_t lived_ns = exit->time_ns - process->exec_ns;

	if (exit->exit_status < 0)
		return lived_ns < LOAD_SHORT_NS;
	return WIFSIGNALED(exit->exit_status) && lived_ns < LOAD_NS;
}

static void add_untracked(struct mt_coverage *coverage, struct process *process,
			  enum mt_untracked_reason early)
{
	enum mt_untracked_reason reason =
		process->explained ? process->reason
				   : mt_untracked_reason_of_exec(process->exec_flags);
	struct mt_untracked *entry;
	bool listed;

	if (reason == MT_UNTRACKED_UNKNOWN && !process->explained && may_be_loading(process))
		reason = early;
	if (reason == MT_UNTRACKED_UNKNOWN && !process->explained && process->library_mapped)
		reason = MT_UNTRACKED_ELSEWHERE;
	count(coverage, reason, true);
	listed = coverage->listed < UNTRACKED_MAX;
	entry = &coverage->untracked[listed ? coverage->listed++
					    : UNTRACKED_MAX + coverage->unlisted++ % UNTRACKED_MAX];
	entry->pid = process->pid;
	entry->time_ns = process->exec_ns;
	entry->reason = reason;
	if (!listed)
		return;
	entry->path = process->path;
	process->path = NULL;
}

/*
 * Its image is over at `end_ns`: by then its hello has been sent, or there is none. `early` is why,
 * when it may have had no time for that, else MT_UNTRACKED_UNKNOWN.
 */
static void end_image(struct mt_coverage *coverage, struct process *process, uint64_t end_ns,
		      enum mt_untracked_reason early)
{
	bool of_next = process->explained && process->explained_ns >= end_ns;
	bool tracked = false;
	int i, kept = 0;

	if (of_next)
		process->explained = false;
	if (process->unseen)
		coverage->totals.known = false;
	for (i = 0; i < process->hello_count; i++) {
		if (process->hellos[i] >= end_ns)
			process->hellos[kept++] = process->hellos[i];
		else if (process->has_exec && process->hellos[i] >= process->exec_ns)
			tracked = true;
	}
	process->hello_count = kept;
	if (process->has_exec && !tracked)
		add_untracked(coverage, process, early);
	if (process->has_exec || of_next)
		process->explained = of_next;
	process->has_exec = false;
	free(process->path);
	process->path = NULL;
}

static void note_exec(struct mt_coverage *coverage, const struct mt_kev *event)
{
	struct process *process = find_or_add(coverage, event->pid);

	if (!process)
		return;
	mark_seen(coverage, process);
	process->unseen = false;
	end_image(coverage, process, event->time_ns, MT_UNTRACKED_UNKNOWN);
	process->has_exec = true;
	process->mappings = 0;
	process->library_mapped = false;
	process->exec_ns = event->time_ns;
	process->exec_flags = event->exec_flags;
	if (event->path && event->path_len)
		process->path = strndup(event->path, event->path_len);
}

static void note_mapping(struct mt_coverage *coverage, const struct mt_kev *event)
{
	static const char library[] = "/" MT_LIBRARY_NAME;
	struct process *process = find(coverage, event->pid);
	const size_t len = sizeof(library) - 1;

	if (!process || !process->has_exec)
		return;
	process->unseen = false;
	process->mappings++;
	if (event->path && event->path_len >= len &&
	    memcmp(event->path + event->path_len - len, library, len) == 0)
		process->library_mapped = true;
}

/* `exit` is its Exit, or what tells that it has gone. */
static void note_exit(struct mt_coverage *coverage, const struct mt_kev *exit)
{
	struct process **place = find_place(coverage, exit->pid);
	enum mt_untracked_reason early = MT_UNTRACKED_UNKNOWN;
	struct process *process = *place;

	if (!process)
		return;
	if (exit->type == MT_KEV_EXIT && process->has_exec && was_killed_early(process, exit))
		early = MT_UNTRACKED_ENDED;
	end_image(coverage, process, exit->time_ns, early);
	if (process->seen)
		coverage->alive--;
	*place = process->next;
	coverage->process_count--;
	free_process(process);
}

static void note_fork(struct mt_coverage *coverage, const struct mt_kev *event)
{
	struct process *process = find(coverage, event->pid);

	/* Its number was another's, whose exit record got lost. */
	if (process && process->seen)
		note_exit(coverage, event);
	mark_seen(coverage, find_or_add(coverage, event->pid));
}

static void note_unseen(struct mt_coverage *coverage, pid_t pid)
{
	struct process *process = find_or_add(coverage, pid);

	mark_seen(coverage, process);
	if (process)
		process->unseen = true;
}

void mt_coverage_add_process(struct mt_coverage *coverage, pid_t pid)
{
	pthread_mutex_lock(&coverage->lock);
	mark_seen(coverage, find_or_add(coverage, pid));
	pthread_mutex_unlock(&coverage->lock);
}

void mt_coverage_add_image(struct mt_coverage *coverage, pid_t pid, const char *path)
{
	struct process *process;

	pthread_mutex_lock(&coverage->lock);
	process = find_or_add(coverage, pid);
	mark_seen(coverage, process);
	if (process && coverage->known) {
		process->has_exec = true;
		process->path = path ? strdup(path) : NULL;
	}
	pthread_mutex_unlock(&coverage->lock);
}

void mt_coverage_kernel_event(struct mt_coverage *coverage, const struct mt_kev *event)
{
	if (event->type == MT_KEV_THREAD_EXIT || event->type == MT_KEV_LOST)
		return;
	pthread_mutex_lock(&coverage->lock);
	if (event->type == MT_KEV_FORK)
		note_fork(coverage, event);
	else if (event->type == MT_KEV_EXEC)
		note_exec(coverage, event);
	else if (event->type == MT_KEV_MAPPING)
		note_mapping(coverage, event);
	else if (event->type == MT_KEV_UNSEEN)
		note_unseen(coverage, event->pid);
	else
		note_exit(coverage, event);
	pthread_mutex_unlock(&coverage->lock);
}

/*
 * The process, or this image of it, was over before its hello was read from the socket. Returns its
 * entry among the untracked images, or NULL.
 */
static struct mt_untracked *find_over(struct mt_coverage *coverage, const struct process *process,
				      pid_t pid, uint64_t time_ns)
{
	size_t i;

	if (process && !(process->has_exec && time_ns < process->exec_ns))
		return NULL;
	for (i = 2 * UNTRACKED_MAX; i-- > 0;) {
		struct mt_untracked *entry = &coverage->untracked[i];

		if ((i < coverage->listed || i >= UNTRACKED_MAX) && entry->pid == pid &&
		    entry->time_ns <= time_ns && !mt_untracked_is_in_part(entry->reason))
			return entry;
	}
	return NULL;
}

static void take_back(struct mt_coverage *coverage, struct mt_untracked *entry)
{
	size_t i = (size_t)(entry - coverage->untracked);

	count(coverage, entry->reason, false);
	if (i >= UNTRACKED_MAX) {
		entry->pid = 0; /* nobody's */
		return;
	}
	free(entry->path);
	coverage->listed--;
	memmove(entry, entry + 1, (coverage->listed - i) * sizeof(*entry));
}

static void correct(struct mt_coverage *coverage, struct mt_untracked *entry,
		    enum mt_untracked_reason reason)
{
	count(coverage, entry->reason, false);
	count(coverage, reason, true);
	entry->reason = reason;
}

static void note_hello(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns)
{
	struct process *process = find(coverage, pid);
	struct mt_untracked *over = find_over(coverage, process, pid, time_ns);

	if (over) {
		take_back(coverage, over);
		return;
	}
	process = find_or_add(coverage, pid);
	if (!process)
		return;
	if (process->hello_count == HELLOS_MAX) {
		process->hello_count--;
		memmove(process->hellos, process->hellos + 1,
			(HELLOS_MAX - 1) * sizeof(process->hellos[0]));
	}
	process->hellos[process->hello_count++] = time_ns;
}

void mt_coverage_hello(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns)
{
	pthread_mutex_lock(&coverage->lock);
	coverage->totals.tracked++;
	if (coverage->known)
		note_hello(coverage, pid, time_ns);
	pthread_mutex_unlock(&coverage->lock);
}

/* An image that no process waits for. */
static void add_alone(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns, const char *path,
		      enum mt_untracked_reason reason)
{
	struct process alone = {
		.pid = pid, .explained = true, .reason = reason, .exec_ns = time_ns
	};

	alone.path = path ? strdup(path) : NULL;
	add_untracked(coverage, &alone, MT_UNTRACKED_UNKNOWN);
	free(alone.path);
}

/* Without kernel events there is no exec to wait for: the image is untracked here and now. */
static void explain(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns, const char *path,
		    enum mt_untracked_reason reason)
{
	struct process *process;

	pthread_mutex_lock(&coverage->lock);
	if (coverage->known) {
		process = find_or_add(coverage, pid);
		if (process) {
			process->explained = true;
			process->reason = reason;
			process->explained_ns = time_ns;
			if (process->exec_ns == 0)
				process->exec_ns = time_ns;
		}
	} else {
		add_alone(coverage, pid, time_ns, path, reason);
	}
	pthread_mutex_unlock(&coverage->lock);
}

void mt_coverage_hello_in_vain(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns,
			       enum mt_untracked_reason reason)
{
	struct mt_untracked *over;

	pthread_mutex_lock(&coverage->lock);
	over = find_over(coverage, find(coverage, pid), pid, time_ns);
	if (over)
		correct(coverage, over, reason);
	pthread_mutex_unlock(&coverage->lock);
	if (!over)
		explain(coverage, pid, time_ns, NULL, reason);
}

static bool forget_hello(struct process *process, uint64_t time_ns)
{
	for (int i = 0; process && i < process->hello_count; i++) {
		if (process->hellos[i] == time_ns) {
			process->hellos[i] = process->hellos[--process->hello_count];
			return true;
		}
	}
	return false;
}

void mt_coverage_hello_undone(struct mt_coverage *coverage, pid_t pid, uint64_t time_ns,
			      enum mt_untracked_reason reason)
{
	bool was_tracked;

	pthread_mutex_lock(&coverage->lock);
	was_tracked = coverage->known ? forget_hello(find(coverage, pid), time_ns)
				      : coverage->totals.tracked > 0;
	coverage->totals.tracked -= was_tracked;
	pthread_mutex_unlock(&coverage->lock);
	if (was_tracked)
		explain(coverage, pid, time_ns, NULL, reason);
}

void mt_coverage_explain(struct mt_coverage *coverage, pid_t pid, const char *path,
			 enum mt_untracked_reason reason)
{
	explain(coverage, pid, 0, path, reason);
}

void mt_coverage_in_part(struct mt_coverage *coverage, pid_t pid, const char *path,
			 enum mt_untracked_reason reason)
{
	pthread_mutex_lock(&coverage->lock);
	coverage->totals.tracked--; /* its hello may be counted only later */
	add_alone(coverage, pid, 0, path, reason);
	pthread_mutex_unlock(&coverage->lock);
}

bool mt_coverage_is_seen(struct mt_coverage *coverage, pid_t pid)
{
	const struct process *process;
	bool seen;

	pthread_mutex_lock(&coverage->lock);
	process = find(coverage, pid);
	seen = process && process->seen;
	pthread_mutex_unlock(&coverage->lock);
	return seen;
}

size_t mt_coverage_alive(struct mt_coverage *coverage)
{
	size_t alive;

	pthread_mutex_lock(&coverage->lock);
	alive = coverage->alive;
	pthread_mutex_unlock(&coverage->lock);
	return alive;
}

/* The kernel's flags do not tell musl or a sanitizer, and perf tells nothing: the file may. */
static void look_again(struct mt_coverage *coverage, struct mt_untracked *entry)
{
	struct mt_command command;
	enum mt_untracked_reason reason;

	if (!entry->path || entry->path[0] != '/')
		return;
	/* Whose ids it had is not known; that a set-ID bit mattered only the kernel can say. */
	mt_command_check(entry->path, 0, 0, &command);
	reason = mt_untracked_reason_of(command.kind);
	if (reason == MT_UNTRACKED_UNKNOWN || reason == MT_UNTRACKED_SECURE)
		return;
	correct(coverage, entry, reason);
}

static void end_last_image(struct mt_coverage *coverage, struct process *process, uint64_t now_ns)
{
	bool young = process->has_exec && process->exec_ns + LOAD_NS > now_ns;

	end_image(coverage, process, UINT64_MAX,
		  young ? MT_UNTRACKED_STARTING : MT_UNTRACKED_UNKNOWN);
}

void mt_coverage_finish(struct mt_coverage *coverage, uint64_t now_ns)
{
	struct process *process;
	size_t i, looks = 0;

	pthread_mutex_lock(&coverage->lock);
	for (i = 0; i < BUCKETS; i++) {
		for (process = coverage->buckets[i]; process; process = process->next)
			end_last_image(coverage, process, now_ns);
	}
	for (i = 0; i < coverage->listed && looks < LOOKS_MAX; i++) {
		enum mt_untracked_reason reason = coverage->untracked[i].reason;

		if (reason == MT_UNTRACKED_UNKNOWN || reason == MT_UNTRACKED_ENVIRONMENT ||
		    reason == MT_UNTRACKED_ELSEWHERE || mt_untracked_is_not_loaded(reason)) {
			look_again(coverage, &coverage->untracked[i]);
			looks++;
		}
	}
	pthread_mutex_unlock(&coverage->lock);
}

void mt_coverage_totals(struct mt_coverage *coverage, struct mt_coverage_totals *ret_totals)
{
	pthread_mutex_lock(&coverage->lock);
	*ret_totals = coverage->totals;
	if (ret_totals->tracked > SIZE_MAX / 2) /* who is hostile takes back what it never said */
		ret_totals->tracked = 0;
	pthread_mutex_unlock(&coverage->lock);
}

size_t mt_coverage_untracked(const struct mt_coverage *coverage,
			     const struct mt_untracked **ret_list)
{
	*ret_list = coverage->untracked;
	return coverage->listed;
}

size_t mt_coverage_alive_list(struct mt_coverage *coverage, pid_t *pids, size_t max)
{
	const struct process *process;
	size_t i, count = 0;

	pthread_mutex_lock(&coverage->lock);
	for (i = 0; i < BUCKETS; i++) {
		for (process = coverage->buckets[i]; process; process = process->next) {
			if (!process->seen)
				continue;
			if (count < max)
				pids[count] = process->pid;
			count++;
		}
	}
	pthread_mutex_unlock(&coverage->lock);
	return count;
}
