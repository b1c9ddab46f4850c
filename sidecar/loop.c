/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/job.h"

/* A look at all sources even when none calls: a word that was lost delays the end, no more. */
#define LOOK_MS 1000
/* The programs' records that a stop of the sidecar would leave lying. */
#define SETTLE_MS 100

enum source {
	SOURCE_SIGNALS,
	SOURCE_CONTROL,
	SOURCE_RECORDER,
	SOURCES,
};

struct mt_loop {
	struct mt_loop_options options;
	int epoll_fd;
	int signal_fd;
	bool ending;
};

static int add_source(struct mt_loop *loop, int fd, enum source source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int mt_loop_new(const struct mt_loop_options *options, struct mt_loop **ret_loop)
{
	struct mt_loop *loop = calloc(1, sizeof(*loop));
	sigset_t mask;
	int err;

	if (!loop)
		return -ENOMEM;
	loop->options = *options;
	loop->signal_fd = -1;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		goto fail_errno;
	loop->epoll_fd = mt_move_fd_high(loop->epoll_fd);
	/* All signals that this process blocks are read here. */
	sigprocmask(SIG_SETMASK, NULL, &mask);
	loop->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->signal_fd < 0)
		goto fail_errno;
	loop->signal_fd = mt_move_fd_high(loop->signal_fd);
	err = add_source(loop, loop->signal_fd, SOURCE_SIGNALS);
	if (!err)
		err = add_source(loop, mt_control_fd(options->control), SOURCE_CONTROL);
	if (!err)
		err = add_source(loop, mt_recorder_fd(options->recorder), SOURCE_RECORDER);
	if (err)
		goto fail;
	*ret_loop = loop;
	return 0;

fail_errno:
	err = -errno;
fail:
	mt_loop_free(loop);
	return err;
}

void mt_loop_free(struct mt_loop *loop)
{
	if (!loop)
		return;
	if (loop->signal_fd >= 0)
		close(loop->signal_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	free(loop);
}

static void begin_end(struct mt_loop *loop)
{
	if (loop->ending)
		return;
	loop->ending = true;
	mt_recorder_end(loop->options.recorder);
	loop->options.on_end(loop->options.context);
}

static bool wait_for_change(pid_t pid, int *ret_status)
{
	pid_t got;

	do {
		got = waitpid(pid, ret_status, WNOHANG | WUNTRACED);
	} while (got < 0 && errno == EINTR);
	return got == pid;
}

static void reap(struct mt_loop *loop)
{
	struct mt_child *child = loop->options.child;
	int status;

	while (child && !child->ended && wait_for_change(child->pid, &status)) {
		if (WIFSTOPPED(status)) {
			mt_recorder_settle(loop->options.recorder, SETTLE_MS);
			mt_job_stop_with(child->pid);
			continue;
		}
		child->ended = true;
		child->status = status;
		mt_recorder_root_ended(loop->options.recorder, status, true);
		begin_end(loop);
	}
}

/*
 * Who is process 1 of its namespace is given orphans, and nobody else takes them away. The command
 * is left to reap().
 */
static void reap_orphans(const struct mt_loop *loop)
{
	const struct mt_child *child = loop->options.child;
	siginfo_t info = { .si_pid = 0 };

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 &&
	       (!child || child->ended || info.si_pid != child->pid)) {
		/* It has ended: this does not wait. */
		waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
}

static void pass_on(const struct mt_loop *loop, const struct signalfd_siginfo *info)
{
	const struct mt_child *child = loop->options.child;
	union sigval value = { .sival_ptr = (void *)(uintptr_t)info->ssi_ptr };
	int sig = (int)info->ssi_signo;

	if (child->ended || info->ssi_code > 0 || (pid_t)info->ssi_pid == getpid())
		return;
	if (info->ssi_pid && mt_job_is_in_tree((pid_t)info->ssi_pid, child->pid))
		return;
	if (info->ssi_code == SI_QUEUE)
		sigqueue(child->pid, sig, value);
	else
		kill(child->pid, sig);
}

static void on_signal(struct mt_loop *loop, const struct signalfd_siginfo *info)
{
	/* From the kernel it tells of our child; from a process it is one like any other. */
	if (info->ssi_signo == SIGCHLD) {
		reap(loop);
		reap_orphans(loop);
	}
	if (loop->options.child) {
		pass_on(loop, info);
		return;
	}
	if (info->ssi_signo == SIGTERM || info->ssi_signo == SIGINT || info->ssi_signo == SIGHUP)
		begin_end(loop);
}

static void read_signals(struct mt_loop *loop)
{
	struct signalfd_siginfo infos[8];
	ssize_t n, i;

	while ((n = read(loop->signal_fd, infos, sizeof(infos))) > 0) {
		for (i = 0; i < n / (ssize_t)sizeof(infos[0]); i++)
			on_signal(loop, &infos[i]);
	}
}

/* Once the merge is over, its descriptor would be ready for ever: the loop ends with it. */
static bool is_done(struct mt_loop *loop)
{
	if (!mt_recorder_is_over(loop->options.recorder))
		return false;
	/* The tree has ended in manual use, and the merge is still to be told to finish. */
	if (!loop->ending)
		begin_end(loop);
	return true;
}

/* How long the loop may wait for a source to call. */
static int longest_wait_ms(const struct mt_loop *loop)
{
	int timeout = mt_control_timeout_ms(loop->options.control);
	int beat = mt_pulse_every_ms(loop->options.pulse);

	if (timeout < 0 || timeout > LOOK_MS)
		timeout = LOOK_MS;
	return timeout < beat ? timeout : beat;
}

void mt_loop_run(struct mt_loop *loop)
{
	struct epoll_event events[SOURCES];
	int n, i;

	while (!is_done(loop)) {
		/* The command may be over already. */
		reap(loop);
		n = epoll_wait(loop->epoll_fd, events, SOURCES, longest_wait_ms(loop));
		/* Also when nothing is ready, as below: a stop may be over. */
		mt_pulse_beat(loop->options.pulse);
		for (i = 0; i < n; i++) {
			if (events[i].data.u32 == SOURCE_SIGNALS)
				read_signals(loop);
		}
		/* Also when nothing is ready: for clients that take too long. */
		mt_control_serve(loop->options.control);
	}
	mt_recorder_join(loop->options.recorder);
}
