/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/runmeta.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/meta_builder.h"
#include "common/run_meta.h"

#define ARGUMENTS_BYTES_MAX (1u << 20)

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int append(struct mt_artifact_writer *writer, struct mt_meta_builder *builder, bool last)
{
	const uint8_t *frame;
	size_t len;
	int err = mt_meta_finish(builder, &frame, &len);

	if (!err)
		err = last ? mt_artifact_writer_append_last(writer, frame, len)
			   : mt_artifact_writer_append(writer, frame, len);
	mt_meta_fini(builder);
	return err;
}

static void put_command(struct mt_meta_builder *builder, char *const *command)
{
	size_t total = 0;

	mt_meta_begin_array(builder, MT_KEY_COMMAND);
	for (; *command && total < ARGUMENTS_BYTES_MAX; command++) {
		mt_meta_put_str(builder, NULL, *command);
		total += strlen(*command);
	}
	mt_meta_end(builder);
}

/* In manual use the command line is not ours but the root's: the kernel has it. */
static void put_root_command(struct mt_meta_builder *builder, pid_t root)
{
	char text[4096];
	char path[32];
	ssize_t len;
	size_t at;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return;
	text[len] = 0;
	mt_meta_begin_array(builder, MT_KEY_COMMAND);
	for (at = 0; at < (size_t)len; at += strlen(text + at) + 1)
		mt_meta_put_str(builder, NULL, text + at);
	mt_meta_end(builder);
}

static void put_machine(struct mt_meta_builder *builder)
{
	struct utsname name;
	char cwd[PATH_MAX];

	if (getcwd(cwd, sizeof(cwd)))
		mt_meta_put_str(builder, MT_KEY_CWD, cwd);
	if (uname(&name) == 0) {
		mt_meta_put_str(builder, MT_KEY_HOST, name.nodename);
		mt_meta_put_str(builder, MT_KEY_KERNEL, name.release);
		mt_meta_put_str(builder, MT_KEY_MACHINE, name.machine);
	}
	mt_meta_put_u64(builder, MT_KEY_START_NS, clock_ns(CLOCK_MONOTONIC));
	mt_meta_put_u64(builder, MT_KEY_START_UNIX_NS, clock_ns(CLOCK_REALTIME));
}

static void put_sources(struct mt_meta_builder *builder, const struct mt_kernel_report *report)
{
	mt_meta_begin_map(builder, MT_KEY_SOURCES);
	mt_meta_put_str(builder, MT_KEY_PROCESS, report->process);
	mt_meta_put_str(builder, MT_KEY_EXEC_MAPS, report->exec_maps);
	mt_meta_put_str(builder, MT_KEY_LATER_MAPS, report->later_maps);
	if (report->missing[0])
		mt_meta_put_str(builder, MT_KEY_MISSING, report->missing);
	mt_meta_end(builder);
}

static const char *counter_name(enum mt_counter counter)
{
	switch (counter) {
	case MT_COUNTER_TSC:
		return "tsc";
	case MT_COUNTER_CNTVCT:
		return "cntvct";
	case MT_COUNTER_MONOTONIC:
		return "clock_gettime";
	}
	return NULL;
}

int mt_runmeta_write_open(struct mt_artifact_writer *writer, const struct mt_runmeta_open *run)
{
	struct mt_meta_builder builder;

	mt_meta_init(&builder, MT_META_OPEN);
	mt_meta_put_str(&builder, MT_KEY_VERSION, PACKAGE_VERSION);
	if (run->command[0])
		put_command(&builder, run->command);
	else
		put_root_command(&builder, run->root);
	put_machine(&builder);
	mt_meta_put_i64(&builder, MT_KEY_ROOT_PID, run->root);
	mt_meta_put_i64(&builder, MT_KEY_RECORDER_PID, getpid());
	mt_meta_begin_map(&builder, MT_KEY_OPTIONS);
	mt_options_put(run->options, &builder);
	mt_meta_end(&builder);
	mt_meta_put_str(&builder, MT_KEY_CLOCK, counter_name(run->counter));
	mt_meta_put_str(&builder, MT_KEY_ORDER,
			run->options->order == MT_ORDER_STRICT ? "strict" : "fast");
	put_sources(&builder, run->kernel);
	return append(writer, &builder, true);
}

static int write_anomalies(struct mt_artifact_writer *writer, const struct mt_order *order,
			   const struct mt_order_stats *stats)
{
	static const char *const names[] = MT_ANOMALY_NAMES;
	const struct mt_order_anomaly *list;
	size_t count = mt_order_anomalies(order, &list), i;
	struct mt_meta_builder builder;

	if (stats->unknown_frees == 0 && stats->live_allocs == 0)
		return 0;
	mt_meta_init(&builder, MT_META_ANOMALIES);
	mt_meta_begin_map(&builder, MT_KEY_COUNTS);
	mt_meta_put_u64(&builder, names[MT_ANOMALY_UNKNOWN_FREE], stats->unknown_frees);
	mt_meta_put_u64(&builder, names[MT_ANOMALY_LIVE_ALLOC], stats->live_allocs);
	mt_meta_end(&builder);
	mt_meta_begin_array(&builder, MT_KEY_LISTED);
	for (i = 0; i < count && i < MT_ANOMALIES_LISTED; i++) {
		mt_meta_begin_map(&builder, NULL);
		mt_meta_put_u64(&builder, MT_KEY_FRAME, list[i].frame);
		mt_meta_put_u64(&builder, MT_KEY_INDEX, list[i].index);
		if (list[i].reason < MT_ANOMALY_REASONS)
			mt_meta_put_str(&builder, MT_KEY_REASON, names[list[i].reason]);
		mt_meta_end(&builder);
	}
	mt_meta_end(&builder);
	return append(writer, &builder, true);
}

static void put_status(struct mt_meta_builder *builder, int status)
{
	if (WIFEXITED(status))
		mt_meta_put_u64(builder, MT_KEY_EXIT_STATUS, (uint64_t)WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		mt_meta_put_u64(builder, MT_KEY_EXIT_SIGNAL, (uint64_t)WTERMSIG(status));
}

static void put_losses(struct mt_meta_builder *builder, const uint64_t *by_cause, unsigned causes)
{
	unsigned i;

	mt_meta_begin_map(builder, MT_KEY_LOSSES);
	for (i = 0; i < causes; i++) {
		if (by_cause[i])
			mt_meta_put_u64(builder, mt_loss_name(i), by_cause[i]);
	}
	mt_meta_end(builder);
}

static void put_order_stats(struct mt_meta_builder *builder, const struct mt_order_stats *stats)
{
	mt_meta_begin_map(builder, MT_KEY_ORDER_STATS);
	mt_meta_put_u64(builder, "late", stats->late);
	mt_meta_put_u64(builder, "parked", stats->parked);
	mt_meta_put_u64(builder, "unknown_frees", stats->unknown_frees);
	mt_meta_put_u64(builder, "live_allocs", stats->live_allocs);
	mt_meta_put_u64(builder, "inherited_ends", stats->inherited_ends);
	mt_meta_put_u64(builder, "split_reallocs", stats->split_reallocs);
	mt_meta_put_u64(builder, "dropped_begins", stats->dropped_begins);
	mt_meta_put_u64(builder, "unchecked", stats->unchecked);
	mt_meta_put_u64(builder, MT_KEY_CORRUPT_STREAMS, stats->corrupt_streams);
	mt_meta_put_u64(builder, MT_KEY_UNREAD_STREAMS, stats->unread_streams);
	mt_meta_put_u64(builder, "untranslated_tids", stats->untranslated_tids);
	mt_meta_end(builder);
}

/* A list that outgrows its frame goes on in the next; the caller has begun the first. */
static int next_frame(struct mt_artifact_writer *writer, struct mt_meta_builder *builder,
		      const char *list)
{
	int err;

	if (mt_meta_len(builder) < MT_META_SPLIT_BYTES)
		return 0;
	mt_meta_end(builder);
	err = append(writer, builder, true);
	mt_meta_init(builder, MT_META_CLOSED);
	mt_meta_begin_array(builder, list);
	return err;
}

/* How the command ended is known from wait(2), also where the kernel's source does not tell. */
static void put_end(struct mt_meta_builder *builder, const struct mt_order_process *process,
		    const struct mt_runmeta_closed *closed)
{
	if (process->exited && process->status_known)
		put_status(builder, process->exit_status);
	else if (process->exited && process->pid == closed->root && closed->status_known)
		put_status(builder, closed->status);
}

static int put_processes(struct mt_artifact_writer *writer, struct mt_meta_builder *builder,
			 const struct mt_runmeta_closed *closed)
{
	const struct mt_order_process *list;
	size_t count = mt_order_processes(closed->order, &list), i;
	int err = 0;

	mt_meta_begin_array(builder, MT_KEY_PROCESSES);
	for (i = 0; i < count && !err; i++) {
		mt_meta_begin_map(builder, NULL);
		mt_meta_put_i64(builder, MT_KEY_PID, list[i].pid);
		if (list[i].parent_pid)
			mt_meta_put_i64(builder, MT_KEY_PARENT_PID, list[i].parent_pid);
		mt_meta_put_u64(builder, MT_KEY_IMAGES, list[i].images);
		mt_meta_put_u64(builder, MT_KEY_EVENTS, list[i].events);
		put_end(builder, &list[i], closed);
		put_losses(builder, list[i].lost, MT_LOST_CAUSES);
		mt_meta_end(builder);
		err = next_frame(writer, builder, MT_KEY_PROCESSES);
	}
	mt_meta_end(builder);
	return err;
}

static int put_untracked(struct mt_artifact_writer *writer, struct mt_meta_builder *builder,
			 struct mt_coverage *coverage)
{
	const struct mt_untracked *list;
	size_t count = mt_coverage_untracked(coverage, &list), i;
	struct mt_coverage_totals totals;
	int err = 0;

	mt_coverage_totals(coverage, &totals);
	if (!totals.known && count == 0) {
		mt_meta_put_nil(builder, MT_KEY_UNTRACKED);
		return 0;
	}
	mt_meta_begin_array(builder, MT_KEY_UNTRACKED);
	for (i = 0; i < count && !err; i++) {
		mt_meta_begin_map(builder, NULL);
		mt_meta_put_i64(builder, MT_KEY_PID, list[i].pid);
		if (list[i].path)
			mt_meta_put_str(builder, MT_KEY_PATH, list[i].path);
		mt_meta_put_str(builder, MT_KEY_REASON, mt_untracked_reason_name(list[i].reason));
		mt_meta_end(builder);
		err = next_frame(writer, builder, MT_KEY_UNTRACKED);
	}
	mt_meta_end(builder);
	return err;
}

static void put_totals(struct mt_meta_builder *builder, const struct mt_runmeta_closed *closed,
		       const struct mt_order_stats *stats)
{
	struct mt_coverage_totals totals;
	size_t i;

	mt_coverage_totals(closed->coverage, &totals);
	mt_meta_put_u64(builder, MT_KEY_END_NS, clock_ns(CLOCK_MONOTONIC));
	if (closed->status_known)
		put_status(builder, closed->status);
	mt_meta_put_u64(builder, MT_KEY_EVENTS, closed->encoder->events_written);
	put_losses(builder, closed->loss->by_cause, MT_LOSS_CAUSES);
	put_order_stats(builder, stats);
	mt_meta_put_u64(builder, MT_KEY_TRACKED, totals.tracked);
	if (totals.known)
		mt_meta_put_u64(builder, MT_KEY_UNTRACKED_COUNT, totals.untracked);
	if (closed->unheard)
		mt_meta_put_u64(builder, MT_KEY_UNHEARD, closed->unheard);
	if (totals.not_loaded)
		mt_meta_put_u64(builder, MT_KEY_NOT_LOADED, totals.not_loaded);
	mt_meta_begin_array(builder, MT_KEY_ALIVE);
	for (i = 0; i < closed->alive_count; i++)
		mt_meta_put_i64(builder, NULL, closed->alive[i]);
	mt_meta_end(builder);
}

int mt_runmeta_write_closed(struct mt_artifact_writer *writer,
			    const struct mt_runmeta_closed *closed)
{
	struct mt_meta_builder builder;
	struct mt_order_stats stats;
	int err;

	mt_order_stats(closed->order, &stats);
	err = write_anomalies(writer, closed->order, &stats);
	if (err)
		return err;
	mt_meta_init(&builder, MT_META_CLOSED);
	err = put_processes(writer, &builder, closed);
	if (!err)
		err = put_untracked(writer, &builder, closed->coverage);
	if (err) {
		mt_meta_fini(&builder);
		return err;
	}
	put_totals(&builder, closed, &stats);
	return append(writer, &builder, true);
}
