/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/run.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/sanitizer.h"
#include "sidecar/job.h"
#include "sidecar/patience.h"
#include "sidecar/release.h"
#include "sidecar/runmeta.h"
#include "sidecar/say.h"
#include "sidecar/timens.h"

#define FLUSH_NS UINT64_C(1000000000)
/* With a limit on address space, one image's segment takes this part of it at most. */
#define MAP_SHARE 16
/* Encoding an event takes about three times as long as merging it. */
#define WORKERS_LEAST 2
#define WORKERS_MOST  3

static void say_untrackable(const struct mt_command *command)
{
	const char *reason = mt_command_reason(command->kind);

	if (!reason)
		return;
	if (mt_command_refuses_preload(command->kind))
		mt_say_note("%s %s%s%s%s: it runs untracked, and so does what it starts",
			    command->path, reason, command->detail[0] ? " (" : "", command->detail,
			    command->detail[0] ? ")" : "");
	else
		mt_say_note("%s %s: its own heap events cannot be recorded, those of programs that "
			    "it starts are",
			    command->path, reason);
}

/* A sanitizer in the user's LD_PRELOAD would stop the command if we stood in front of it. */
static void check_preload(struct mt_command *command)
{
	const char *name = mt_sanitizer_in(mt_session_their_preload());

	if (!name || mt_command_refuses_preload(command->kind))
		return;
	command->kind = MT_COMMAND_SANITIZER;
	snprintf(command->detail, sizeof(command->detail), "%.*s", (int)strcspn(name, ": \t"),
		 name);
}

int mt_run_prepare(struct mt_run *run)
{
	const struct mt_options *options = run->options;
	int err;

	run->output.fd = -1;
	run->output.old_fd = -1;
	run->child.gate = -1;
	run->pulse.fd = -1;
	err = mt_identity_find(options->as_root || !run->has_child, &run->identity);
	if (err)
		return err;
	if (run->identity.change)
		mt_say_note("called by sudo: the command runs as %s (--as-root keeps root)",
			    run->identity.name[0] ? run->identity.name : "the calling user");
	err = mt_session_open(&run->identity, &run->session);
	if (err) {
		mt_say_error("cannot make a session: %s", strerror(-err));
		return err;
	}
	if (!run->has_child)
		return 0;
	mt_command_check(options->command[0], run->identity.uid, run->identity.gid, &run->command);
	check_preload(&run->command);
	say_untrackable(&run->command);
	if (!options->library) {
		mt_say_error("no --library was given: start commands with memtrack-preload");
		return -EINVAL;
	}
	return mt_session_set_library(&run->session, options->library);
}

static int open_kernel(struct mt_run *run)
{
	const struct mt_options *options = run->options;
	struct mt_kernel_options kernel = {
		.level = (enum mt_kernel_level)options->bpf,
		.force_process = options->force_process,
		.force_exec_maps = options->force_exec_maps,
		.force_later_maps = options->force_later_maps,
		.preload_name = MT_LIBRARY_NAME,
	};
	int err;

	err = mt_kernel_open(&kernel, &run->kernel, &run->kernel_report);
	if (!err)
		err = mt_kernel_follow(run->kernel, run->root, &run->kernel_report);
	if (err) {
		if (err == -ENOTSUP && run->kernel_report.missing[0])
			mt_say_error("%s", run->kernel_report.missing);
		else
			mt_say_error("kernel events cannot be had: %s", strerror(-err));
		return err;
	}
	if (run->kernel_report.missing[0] && options->bpf != MT_KERNEL_OFF)
		mt_say_note("%s", run->kernel_report.missing);
	return 0;
}

static bool has_perf_events(const struct mt_run *run)
{
	return strcmp(run->kernel_report.process, "perf") == 0;
}

static bool has_kernel_events(const struct mt_run *run)
{
	return strcmp(run->kernel_report.process, "none") != 0;
}

/* From here on the sidecar is as the user is. */
static int drop_privileges(struct mt_run *run)
{
	int err = mt_identity_take(&run->identity);

	if (err)
		mt_say_error("cannot become the user who called sudo: %s", strerror(-err));
	else
		mt_identity_drop_capabilities(!run->identity.change);
	return err;
}

/* The artifact keeps to the user's soft limit, which the sidecar has raised for its segments. */
static uint64_t file_limit(const struct mt_run *run)
{
	uint64_t limit = run->inherited->limits[RLIMIT_FSIZE].rlim_cur;
	uint64_t most = run->options->max_file_bytes;

	if (limit == RLIM_INFINITY)
		return most;
	return most && most < limit ? most : limit;
}

static int open_artifact(struct mt_run *run)
{
	const struct mt_options *options = run->options;
	struct mt_runmeta_open open = {
		.options = options,
		.command = options->command,
		.root = run->root,
		.counter = run->counter,
		.kernel = &run->kernel_report,
	};
	int err;

	err = mt_output_open(options->output, options->force, run->root, &run->output);
	if (err)
		return err;
	if (run->output.renamed)
		mt_say_note("the usual name was taken: writing %s", run->output.path);
	err = mt_artifact_writer_init(&run->writer, run->output.fd, file_limit(run));
	if (!err)
		err = mt_runmeta_write_open(&run->writer, &open);
	if (err)
		mt_say_error("cannot write %s: %s", run->output.path, strerror(-err));
	return err;
}

/*
 * All processors but those of the program and of the merge. Two workers also where there are two
 * processors: encoding is more than half of all the work. And no more than a merge can feed.
 */
static unsigned worker_count(const struct mt_options *options)
{
	cpu_set_t cpus;
	int count = 1, wanted;

	if (options->workers)
		return (unsigned)options->workers;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		count = CPU_COUNT(&cpus);
	wanted = count - 2 < WORKERS_LEAST ? WORKERS_LEAST : count - 2;
	if (wanted > WORKERS_MOST)
		wanted = WORKERS_MOST;
	return (unsigned)(wanted < count ? wanted : count);
}

/* In manual use its image runs already. */
static void add_root(struct mt_run *run)
{
	char link[64], path[PATH_MAX];
	ssize_t len;

	if (run->has_child) {
		mt_coverage_add_process(run->coverage, run->root);
		return;
	}
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)run->root);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = 0;
	mt_coverage_add_image(run->coverage, run->root, len > 0 ? path : NULL);
}

static int start_threads(struct mt_run *run)
{
	const struct mt_options *options = run->options;
	unsigned workers = worker_count(options);
	struct mt_encoder_options encoder = {
		.workers = workers,
		.in_flight = 2 * workers + 2,
		.level = (int)options->level,
		.codec = (enum mt_codec)options->codec,
	};
	struct mt_recorder_options recorder = {
		.order = {
			.counter = run->counter,
			.kernel_events = has_kernel_events(run),
			.max_liveness_bytes = options->max_memory_bytes,
			.max_chunk_bytes = options->max_buffers_bytes,
			.flush_ns = FLUSH_NS,
		},
		.kernel = run->kernel,
		.root = run->root,
		.by_perf = has_perf_events(run),
		.whole_tree = !run->has_child,
	};
	int err;

	err = mt_encoder_new(&encoder, &run->writer, &run->encoder);
	if (err)
		return err;
	run->coverage = mt_coverage_new(has_kernel_events(run));
	run->allocator = mt_allocator_new(); /* without it nothing is said of such programs */
	if (!run->coverage)
		return -ENOMEM;
	add_root(run);
	if (mt_command_reason(run->command.kind))
		mt_coverage_explain(run->coverage, run->root, run->command.path,
				    mt_untracked_reason_of(run->command.kind));
	recorder.order.encoder = run->encoder;
	recorder.coverage = run->coverage;
	err = mt_recorder_new(&recorder, &run->recorder);
	if (!err)
		err = mt_recorder_start(run->recorder);
	run->recorder_started = err == 0;
	run->room.holds = options->on_full == MT_POLICY_BLOCK;
	run->room.max_wait_ns = (uint64_t)options->max_wait_ms * 1000000;
	return err;
}

/*
 * What the segment of one image may take of address space, here and in the program; a limit on the
 * size of files holds for it too.
 */
static uint64_t map_limit(const struct mt_hello *hello)
{
	uint64_t most = hello->max_map_bytes;
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur / MAP_SHARE < most)
		most = limit.rlim_cur / MAP_SHARE;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < most)
		most = limit.rlim_cur;
	return most;
}

static uint32_t shm_flags(const struct mt_options *options)
{
	return (options->order == MT_ORDER_STRICT ? MT_SHM_STRICT : 0u) |
	       (options->no_mmap_events ? 0u : MT_SHM_MMAP_EVENTS) |
	       (options->no_follow_env ? 0u : MT_SHM_FOLLOW_ENV);
}

/* Does no source tell of what the image that says hello was started with? */
static bool lacks_mappings(struct mt_run *run, pid_t pid, const struct mt_hello *hello)
{
	if (strcmp(run->kernel_report.exec_maps, "none") == 0)
		return true;
	/* In manual use the first image was there before the sources were. */
	if (run->has_child || pid != run->root || run->root_mapped ||
	    !(hello->flags & MT_HELLO_ROOT))
		return false;
	run->root_mapped = true;
	return true;
}

/* Other errors are of one image; these would be so for each. */
static void tell_forbidden(struct mt_run *run, int err)
{
	if (run->told_forbidden || (err != -EPERM && err != -EACCES && err != -ENOSYS))
		return;
	run->told_forbidden = true;
	mt_say_note("no heap events: the memory for them cannot be made here (memfd_create: %s)",
		    strerror(-err));
}

static enum mt_room_answer look_for_room(struct mt_run *run)
{
	uint64_t moved_ns;
	bool has_room = mt_recorder_has_room(run->recorder, &moved_ns);

	return mt_room_look(&run->room, has_room, moved_ns, mt_clock_monotonic_ns());
}

static bool may_answer(void *context)
{
	struct mt_run *run = context;

	return run->ending || look_for_room(run) != MT_ROOM_HOLD;
}

/* It gave up the wait; or it was killed in it, and is like any other that recorded little. */
static bool waited_in_vain(const struct mt_run *run, const struct mt_hello *hello)
{
	return hello->flags & MT_HELLO_LEFT && (mt_pulse_stood_still(&run->pulse, hello->time_ns) ||
						mt_room_was_held(&run->room, hello->time_ns));
}

static uint32_t take_in(struct mt_run *run, pid_t pid, struct mt_hello *hello, int *ret_fd,
			uint64_t *ret_total_bytes)
{
	const struct mt_options *options = run->options;
	struct mt_shm_options shm_options = {
		.pool_bytes = options->buffer_bytes < options->max_buffers_bytes
				      ? options->buffer_bytes
				      : options->max_buffers_bytes,
		.max_bytes = options->max_buffers_bytes,
		.max_map_bytes = map_limit(hello),
		.policy = options->on_full,
		.flags = shm_flags(options),
		.counter = run->counter,
		.max_wait_ms = (uint32_t)options->max_wait_ms,
	};
	struct mt_shm shm;
	uint64_t total;
	int err, fd;

	if (run->ending)
		return MT_WELCOME_ENDED;
	if (hello->flags & MT_HELLO_VAIN) {
		mt_coverage_hello_undone(run->coverage, pid, hello->time_ns, MT_UNTRACKED_REFUSED);
		return MT_WELCOME_ENDED;
	}
	if (waited_in_vain(run, hello) || look_for_room(run) == MT_ROOM_REFUSE) {
		mt_coverage_hello_in_vain(run->coverage, pid, hello->time_ns, MT_UNTRACKED_WAITED);
		return MT_WELCOME_ENDED;
	}
	if (mt_allocator_is_own(run->allocator, pid))
		hello->flags |= MT_HELLO_BYPASSED;
	do {
		err = mt_shm_create(&shm_options, &shm);
	} while (err == -ENOMEM && mt_patience(false));
	tell_forbidden(run, err);
	if (!err) {
		fd = shm.fd;
		total = shm.layout.total_bytes;
		/* The mapping goes on without the descriptor, which only the program needs now. */
		shm.fd = -1;
		mt_recorder_hello(run->recorder, pid, hello->time_ns);
		err = mt_order_add_image(mt_recorder_order(run->recorder), &shm, pid, hello);
		if (err) {
			mt_shm_destroy(&shm);
			close(fd);
		} else if (lacks_mappings(run, pid, hello)) {
			mt_recorder_mappings(run->recorder, pid);
		}
	}
	if (err || (hello->flags & MT_HELLO_BYPASSED))
		mt_coverage_hello_in_vain(run->coverage, pid, hello->time_ns,
					  err ? MT_UNTRACKED_REFUSED : MT_UNTRACKED_ALLOCATOR);
	else
		mt_coverage_hello(run->coverage, pid, hello->time_ns);
	if (err)
		return MT_WELCOME_FULL;
	*ret_fd = fd;
	*ret_total_bytes = total;
	return MT_WELCOME_OK;
}

static uint32_t on_hello(void *context, pid_t pid, const struct mt_hello *hello, int *ret_fd,
			 uint64_t *ret_total_bytes)
{
	struct mt_hello by_our_clock = *hello;

	by_our_clock.time_ns = mt_timens_ours(pid, hello->time_ns);
	return take_in(context, pid, &by_our_clock, ret_fd, ret_total_bytes);
}

int mt_run_start(struct mt_run *run)
{
	int err;

	run->counter = mt_clock_detect();
	err = open_kernel(run);
	if (!err)
		err = drop_privileges(run);
	if (!err)
		err = open_artifact(run);
	if (err)
		return err;
	mt_pulse_open(&run->pulse, run->session.directory, (uint64_t)run->options->max_wait_ms);
	err = start_threads(run);
	if (!err)
		err = mt_control_open(&run->session, on_hello, may_answer, run, &run->control);
	if (err)
		mt_say_error("cannot start recording: %s", strerror(-err));
	return err;
}

static void collect(struct mt_run *run)
{
	const struct mt_order *order = mt_recorder_order(run->recorder);
	const struct mt_order_process *list;
	struct mt_control_counts counts;
	struct mt_order_stats stats;
	size_t i;

	mt_control_counts(run->control, &counts);
	run->unheard = counts.unheard;
	mt_order_stats(order, &stats);
	mt_loss_sum(&stats, &run->encoder_stats, &run->loss);
	run->process_count = mt_order_processes(order, &list);
	if (has_kernel_events(run)) {
		run->alive_count =
			mt_coverage_alive_list(run->coverage, run->alive, MT_ALIVE_LISTED);
	} else {
		for (i = 0; i < run->process_count; i++) {
			if (!list[i].exited && run->alive_count < MT_ALIVE_LISTED)
				run->alive[run->alive_count++] = list[i].pid;
		}
	}
	/* In manual use nobody could wait for the root: its exit record tells how it ended. */
	for (i = 0; !run->has_child && i < run->process_count; i++) {
		if (list[i].pid == run->root && list[i].exited && list[i].status_known) {
			run->child.ended = true;
			run->child.status = list[i].exit_status;
		}
	}
}

void mt_run_finish(struct mt_run *run)
{
	struct mt_runmeta_closed closed = { .root = run->root,
					    .coverage = run->coverage,
					    .encoder = &run->encoder_stats,
					    .loss = &run->loss,
					    .alive = run->alive };
	int err;

	mt_encoder_stop(run->encoder, &run->encoder_stats);
	mt_coverage_finish(run->coverage, mt_clock_monotonic_ns());
	collect(run);
	closed.unheard = run->unheard;
	closed.status_known = run->child.ended;
	closed.status = run->child.status;
	closed.order = mt_recorder_order(run->recorder);
	closed.alive_count =
		run->alive_count < MT_ALIVE_LISTED ? run->alive_count : MT_ALIVE_LISTED;
	err = mt_runmeta_write_closed(&run->writer, &closed);
	run->write_error = run->encoder_stats.error ? run->encoder_stats.error : -err;
	mt_artifact_writer_look(&run->writer);
	run->output_trouble = mt_output_trouble(&run->output, run->writer.disturbed);
	/* Some file systems tell of a full disk only here. */
	if (close(run->output.fd) < 0 && !run->write_error)
		run->write_error = errno;
	run->output.fd = -1;
}

void mt_run_close(struct mt_run *run, bool discard)
{
	struct mt_encoder_stats stats;

	if (run->recorder_started && discard) {
		mt_recorder_end(run->recorder);
		mt_recorder_join(run->recorder);
	}
	if (run->encoder && discard)
		mt_encoder_stop(run->encoder, &stats);
	mt_control_close(run->control);
	mt_recorder_free(run->recorder);
	mt_encoder_free(run->encoder);
	mt_coverage_free(run->coverage);
	mt_allocator_free(run->allocator);
	mt_pulse_close(&run->pulse);
	mt_session_close(&run->session);
	if (discard)
		mt_output_discard(&run->output);
	/* The kernel's sources are left to the end of the process: taking them down takes time. */
	mt_release_later();
}
