// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel.h"

#include "sidecar/kernel_bpf.h"
#include "sidecar/kernel_merge.h"
#include "sidecar/kernel_perf.h"
#include "sidecar/timens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

struct mt_kernel {
	struct mt_kernel_options options; /* its strings are not used after open */
	struct mt_kernel_report report;
	bool forced; /* a source is, so there is no way around it */
	struct mt_kbpf *bpf;
	struct mt_kperf *perf;
	struct mt_kmerge merge;
	struct mt_kqueue queue;
	int epoll_fd;
	char bpf_why[120];
};

static bool is(const char *name, const char *other)
{
	return name && strcmp(name, other) == 0;
}

/* Whether a source may be taken: it is the forced one, or none is forced. */
static bool allowed(const char *force, const char *name)
{
	return !force || is(force, name);
}

static int bpf_try(struct mt_kernel *kernel, enum mt_kbpf_tier tier, bool vma_iter, bool fentry)
{
	const struct mt_kbpf_options options = {
		.tier = tier,
		.vma_iter = vma_iter,
		.fentry = fentry,
		.ring_bytes = kernel->options.ring_bytes,
		.preload_name = kernel->options.preload_name,
	};
	int err = mt_kbpf_open(&options, &kernel->bpf, kernel->bpf_why, sizeof(kernel->bpf_why));

	if (err)
		return err;
	kernel->report.process = mt_kbpf_tier_name(tier);
	if (vma_iter)
		kernel->report.exec_maps = "vma_iter";
	if (mt_kbpf_has_fentry(kernel->bpf))
		kernel->report.later_maps = "fentry";
	return 0;
}

/* The best eBPF sources that load. One load is all it takes where everything works. */
static int bpf_open(struct mt_kernel *kernel)
{
	const struct mt_kernel_options *options = &kernel->options;
	const bool fentry = allowed(options->force_later_maps, "fentry");
	int err = -ENOTSUP, tier;

	for (tier = MT_KBPF_TP_BTF; tier < MT_KBPF_TIERS; tier++) {
		if (!allowed(options->force_process, mt_kbpf_tier_name(tier)))
			continue;
		if (tier == MT_KBPF_TP_BTF && allowed(options->force_exec_maps, "vma_iter")) {
			err = bpf_try(kernel, tier, true, fentry);
			if (!err)
				return 0;
		}
		if (is(options->force_exec_maps, "vma_iter") || options->level == MT_KERNEL_FULL)
			continue;
		/* Without the privilege nothing of this kind loads. */
		if (err == -EPERM || err == -EACCES)
			return err;
		err = bpf_try(kernel, tier, false, fentry);
		if (!err)
			return 0;
	}
	return err;
}

static bool needs_perf(const struct mt_kernel_report *report)
{
	return is(report->process, "perf") || is(report->exec_maps, "perf") ||
	       is(report->later_maps, "perf");
}

/* What perf could give and nothing better does. */
static void perf_choose(struct mt_kernel *kernel)
{
	const struct mt_kernel_options *options = &kernel->options;
	struct mt_kernel_report *report = &kernel->report;

	if (is(report->process, "none") && allowed(options->force_process, "perf"))
		report->process = "perf";
	if (is(report->process, "none"))
		return; /* mappings of processes that nobody has told of */
	if (is(report->exec_maps, "none") && allowed(options->force_exec_maps, "perf"))
		report->exec_maps = "perf";
	if (is(report->later_maps, "none") && allowed(options->force_later_maps, "perf"))
		report->later_maps = "perf";
}

/* Takes perf out of the report again: `err` came of it. */
static void perf_give_up(struct mt_kernel *kernel)
{
	struct mt_kernel_report *report = &kernel->report;

	if (is(report->process, "perf"))
		report->process = "none";
	if (is(report->exec_maps, "perf"))
		report->exec_maps = "none";
	if (is(report->later_maps, "perf"))
		report->later_maps = "none";
}

static const char *perf_why(int err)
{
	if (err == -EACCES || err == -EPERM)
		return "needs CAP_PERFMON, or kernel.perf_event_paranoid at most 2 and no filter";
	return err ? strerror(-err) : "not tried";
}

/* One line on what is missing and how to get it. */
static void missing_write(struct mt_kernel *kernel, int perf_err)
{
	struct mt_kernel_report *report = &kernel->report;
	char *line = report->missing;
	const size_t size = sizeof(report->missing);

	line[0] = '\0';
	if (kernel->options.level == MT_KERNEL_OFF)
		return;
	if (is(report->process, "none"))
		snprintf(line, size, "no kernel events: eBPF: %s; perf: %s",
			 kernel->bpf_why[0] ? kernel->bpf_why : "not tried", perf_why(perf_err));
	else if (is(report->process, "perf") && kernel->options.level != MT_KERNEL_BASIC)
		snprintf(line, size,
			 "not recorded without eBPF: exit statuses of processes other than the "
			 "command, and why images ran untracked; eBPF: %s",
			 kernel->bpf_why[0] ? kernel->bpf_why : "not tried");
	else if (is(report->exec_maps, "none") || is(report->later_maps, "none"))
		snprintf(line, size, "no %s mappings from the kernel: %s",
			 is(report->exec_maps, "none") ? "executable" : "later executable",
			 perf_why(perf_err));
}

/* A forced source that is not there: its name; FULL without all of it: empty; else NULL. */
static const char *demand_unmet(const struct mt_kernel_options *options,
				const struct mt_kernel_report *report)
{
	if (options->force_process && !is(options->force_process, report->process))
		return options->force_process;
	if (options->force_exec_maps && !is(options->force_exec_maps, report->exec_maps))
		return options->force_exec_maps;
	if (options->force_later_maps && !is(options->force_later_maps, report->later_maps))
		return options->force_later_maps;
	if (options->level == MT_KERNEL_FULL && !is(report->exec_maps, "vma_iter"))
		return "";
	return NULL;
}

static void unmet_write(struct mt_kernel *kernel, const char *unmet,
			struct mt_kernel_report *report)
{
	if (*unmet)
		snprintf(report->missing, sizeof(report->missing),
			 "the demanded kernel source %.32s cannot be had: %s", unmet,
			 kernel->bpf_why[0] ? kernel->bpf_why : "this kernel does not have it");
	else
		snprintf(report->missing, sizeof(report->missing),
			 "eBPF cannot be used as --bpf=full demands: %s; --bpf=auto takes what "
			 "there is",
			 kernel->bpf_why[0] ? kernel->bpf_why : "mappings at exec need Linux 6.7");
}

static void sources_open(struct mt_kernel *kernel)
{
	const struct mt_kernel_options *options = &kernel->options;
	int err = 0;

	if (options->level == MT_KERNEL_OFF || is(options->force_process, "none"))
		return;
	if (options->level != MT_KERNEL_BASIC && !is(options->force_process, "perf"))
		bpf_open(kernel);
	if (options->level == MT_KERNEL_FULL && !kernel->bpf)
		return;
	perf_choose(kernel);
	if (needs_perf(&kernel->report))
		err = mt_kperf_probe();
	if (err)
		perf_give_up(kernel);
	missing_write(kernel, err);
}

int mt_kernel_open(const struct mt_kernel_options *options, struct mt_kernel **ret_kernel,
		   struct mt_kernel_report *ret_report)
{
	struct mt_kernel *kernel = calloc(1, sizeof(*kernel));
	const char *unmet;
	int err = 0;

	if (!kernel)
		return -ENOMEM;
	kernel->options = *options;
	kernel->queue.ahead_ns = (uint64_t)mt_timens_ahead_ns(0);
	kernel->report = (struct mt_kernel_report){ "none", "none", "none", "" };
	kernel->forced =
		options->force_process || options->force_exec_maps || options->force_later_maps;
	kernel->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (kernel->epoll_fd < 0) {
		err = -errno;
		goto out;
	}
	sources_open(kernel);
	unmet = demand_unmet(options, &kernel->report);
	*ret_report = kernel->report;
	if (unmet) {
		err = -ENOTSUP;
		unmet_write(kernel, unmet, ret_report);
		goto out;
	}
	if (kernel->bpf) {
		struct epoll_event event = { .events = EPOLLIN };

		if (epoll_ctl(kernel->epoll_fd, EPOLL_CTL_ADD, mt_kbpf_fd(kernel->bpf), &event)) {
			err = -errno;
			goto out;
		}
	}
	*ret_kernel = kernel;
	kernel = NULL;
out:
	mt_kernel_close(kernel);
	return err;
}

static int perf_follow(struct mt_kernel *kernel, pid_t pid)
{
	int err = mt_kperf_open(pid, is(kernel->report.process, "perf"), kernel->options.perf_scope,
				&kernel->perf);

	if (err)
		return err;
	return mt_kperf_poll_add(kernel->perf, kernel->epoll_fd);
}

int mt_kernel_follow(struct mt_kernel *kernel, pid_t pid, struct mt_kernel_report *ret_report)
{
	int err = 0;

	if (needs_perf(&kernel->report)) {
		err = perf_follow(kernel, pid);
		if (err) {
			perf_give_up(kernel);
			missing_write(kernel, err);
			if (kernel->forced)
				goto out;
		}
	}
	kernel->merge.process_from_perf = is(kernel->report.process, "perf");
	kernel->merge.exec_maps_from_perf = is(kernel->report.exec_maps, "perf");
	kernel->merge.later_maps_from_perf = is(kernel->report.later_maps, "perf");
	kernel->merge.perf_is_global = kernel->perf && mt_kperf_is_global(kernel->perf);
	err = mt_kmerge_follow(&kernel->merge, pid,
			       kernel->perf ? mt_kperf_threads(kernel->perf) : 1);
	if (!err && kernel->bpf)
		err = mt_kbpf_follow(kernel->bpf, pid);
out:
	*ret_report = kernel->report;
	return err;
}

static void rings_read(struct mt_kernel *kernel)
{
	if (kernel->bpf)
		mt_kbpf_read(kernel->bpf, &kernel->queue);
	if (kernel->perf)
		mt_kperf_read(kernel->perf, &kernel->queue);
}

/* Not through the queue: that has no memory, or there would be no loss. */
static void own_loss_give(struct mt_kernel *kernel, mt_kernel_event_fn *on_event, void *context)
{
	struct mt_kev event = { .type = MT_KEV_LOST };
	struct timespec now;

	kernel->queue.lost += kernel->merge.held.lost;
	kernel->merge.held.lost = 0;
	if (!kernel->queue.lost)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	event.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	event.lost = (uint32_t)kernel->queue.lost;
	kernel->queue.lost = 0;
	on_event(context, &event);
}

/*
 * All rings are read twice. What the first pass found may depend on a record
 * that had come into a ring which the pass had left behind already; the second
 * pass finds it. What the second pass finds in addition, later than all of the
 * first, may have the same trouble and stays for the next call, or is given at
 * once when there was nothing else to come.
 */
int mt_kernel_drain(struct mt_kernel *kernel, mt_kernel_event_fn *on_event, void *context)
{
	struct mt_kqueue *queue = &kernel->queue;
	size_t first, count, i;
	uint64_t last_ns = 0;
	int given;

	rings_read(kernel);
	own_loss_give(kernel, on_event, context);
	first = queue->count;
	if (first == 0)
		return 0;
	for (i = 0; i < first; i++)
		if (queue->records[i].event.time_ns > last_ns)
			last_ns = queue->records[i].event.time_ns;
	rings_read(kernel);
	mt_kqueue_sort(queue);
	for (count = queue->count; count > 0; count--)
		if (queue->records[count - 1].event.time_ns <= last_ns)
			break;
	given = mt_kmerge_run(&kernel->merge, queue, count, on_event, context);
	mt_kqueue_drop(queue, count);
	return given;
}

int mt_kernel_poll_fd(const struct mt_kernel *kernel)
{
	return kernel->bpf || kernel->perf ? kernel->epoll_fd : -1;
}

void mt_kernel_close(struct mt_kernel *kernel)
{
	if (!kernel)
		return;
	mt_kbpf_close(kernel->bpf);
	mt_kperf_close(kernel->perf);
	mt_kmerge_fini(&kernel->merge);
	mt_kqueue_fini(&kernel->queue);
	if (kernel->epoll_fd >= 0)
		close(kernel->epoll_fd);
	free(kernel);
}
