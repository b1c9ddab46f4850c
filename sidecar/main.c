/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memtrack-sidecar: runs a command and records the heap events of its process tree (started by
 * memtrack-preload), or follows a process that runs already (started by the preloaded library in
 * manual use).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/loop.h"
#include "sidecar/options.h"
#include "sidecar/report.h"
#include "sidecar/run.h"
#include "sidecar/say.h"

/* The end of the wrapper looks like the end of the command, but for a second core dump. */
static _Noreturn void die_by(int sig)
{
	struct rlimit none = { 0, 0 };
	sigset_t mask;

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(sig, SIG_DFL);
	sigemptyset(&mask);
	sigaddset(&mask, sig);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	kill(getpid(), sig);
	/* Not reached for any signal that can kill. */
	_exit(128 + sig);
}

static _Noreturn void end_as(int status)
{
	if (WIFSIGNALED(status))
		die_by(WTERMSIG(status));
	exit(WEXITSTATUS(status));
}

static void on_end(void *context)
{
	struct mt_run *run = context;

	run->ending = true;
}

/* Returns 0 or a negative errno, having said why. */
static int make_loop(struct mt_run *run, struct mt_loop **ret_loop)
{
	struct mt_loop_options options = { .child = run->has_child ? &run->child : NULL,
					   .control = run->control,
					   .pulse = &run->pulse,
					   .recorder = run->recorder,
					   .on_end = on_end,
					   .context = run };
	int err = mt_loop_new(&options, ret_loop);

	if (err)
		mt_say_error("cannot start recording: %s", strerror(-err));
	return err;
}

static int cannot_run(const char *name, int err)
{
	mt_say_error("cannot run %s: %s", name, strerror(-err));
	return err == -ENOENT ? MT_EXIT_NOT_FOUND : MT_EXIT_CANNOT_RUN;
}

/* After the report. Returns 0, or the status that --require-complete asks for. */
static int end_whole(struct mt_run *run)
{
	bool whole = !run->options->require_complete || mt_report_is_complete(run);

	if (!whole)
		mt_say_error("the recording is not complete (--require-complete)");
	mt_run_close(run, false);
	return whole ? 0 : MT_EXIT_FAILURE;
}

static int run_command(struct mt_run *run)
{
	const struct mt_options *options = run->options;
	struct mt_loop *loop = NULL;
	int status, err;

	err = mt_run_prepare(run);
	if (err)
		goto fail;
	run->env = mt_session_environment(&run->session, &run->identity,
					  !mt_command_refuses_preload(run->command.kind));
	err = run->env ? mt_child_fork(options->command, run->env, &run->identity, run->inherited,
				       &run->child)
		       : -ENOMEM;
	if (err) {
		mt_say_error("cannot make a process: %s", strerror(-err));
		goto fail;
	}
	run->root = run->child.pid;
	err = mt_run_start(run);
	if (!err)
		err = make_loop(run, &loop);
	if (err) {
		mt_child_cancel(&run->child);
		goto fail;
	}
	err = mt_child_run(&run->child);
	/* A child that was killed at the gate (EPIPE) has a status as any other. */
	if (err && err != -EPIPE) {
		mt_child_cancel(&run->child);
		mt_loop_free(loop);
		mt_run_close(run, true);
		return cannot_run(options->command[0], err);
	}
	/* Now the loader is at work, and nobody waits for us. */
	mt_output_begun(&run->output);
	mt_session_clean_leftovers(&run->session);
	mt_loop_run(loop);
	mt_loop_free(loop);
	mt_run_finish(run);
	mt_report(run);
	status = run->child.status;
	err = end_whole(run);
	if (err)
		return err;
	end_as(status);

fail:
	mt_run_close(run, true);
	return MT_EXIT_FAILURE;
}

/* Returns 0 or a negative errno; -EPIPE: the program is gone, or waits no more. */
static int answer(int fd, const char *text, const char *detail)
{
	char line[1024];
	ssize_t put;
	int len = snprintf(line, sizeof(line), "%s%s\n", text, detail);

	if (len >= (int)sizeof(line)) {
		len = sizeof(line);
		line[len - 1] = '\n';
	}
	do {
		put = write(fd, line, (size_t)len);
	} while (put < 0 && errno == EINTR);
	if (put == len)
		return 0;
	return put < 0 ? -errno : -EIO;
}

/* The program says why, or that there is no sidecar, where it cannot be told why. */
static void answer_error(int fd)
{
	char error[512];

	snprintf(error, sizeof(error), "%s", mt_say_last_error());
	mt_say_hold_errors(false);
	if (answer(fd, "!", error) < 0)
		mt_say_error("%s", error);
}

/* Nothing of the program's may be held open by a process that outlives it. */
static void detach(int ready_fd)
{
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (fd = 0; null >= 0 && fd < STDERR_FILENO; fd++) {
		if (fd != ready_fd)
			dup3(null, fd, O_CLOEXEC);
	}
	close(null);
	mt_close_all_but(ready_fd);
	if (ready_fd != STDERR_FILENO)
		mt_say_let_go();
}

/* Returns 0 when the program knows that it is recorded, or a negative errno. */
static int attach_start(struct mt_run *run, int ready_fd, struct mt_loop **ret_loop)
{
	int err;

	/* Until it is answered, the program says our errors, as its own. */
	mt_say_hold_errors(true);
	err = mt_run_prepare(run);
	if (!err)
		err = mt_run_start(run);
	if (!err)
		err = make_loop(run, ret_loop);
	if (err) {
		answer_error(ready_fd);
		return err;
	}
	mt_say_hold_errors(false);
	err = answer(ready_fd, "", run->session.value);
	/* Whoever waits learns it from our end. */
	if (err && err != -EPIPE)
		mt_say_error("cannot tell the program that it is recorded: %s", strerror(-err));
	return err;
}

static int attach(struct mt_run *run)
{
	int ready_fd = (int)run->options->ready_fd;
	struct mt_loop *loop = NULL;
	int err;

	detach(ready_fd);
	run->root = (pid_t)run->options->attach;
	err = attach_start(run, ready_fd, &loop);
	close(ready_fd);
	if (err) {
		mt_loop_free(loop);
		mt_run_close(run, true);
		return MT_EXIT_FAILURE;
	}
	mt_session_clean_leftovers(&run->session);
	mt_loop_run(loop);
	mt_loop_free(loop);
	mt_run_finish(run);
	mt_report(run);
	return end_whole(run);
}

int main(int argc, char **argv)
{
	static struct mt_inherited inherited;
	static struct mt_options options;
	static struct mt_run run;

	mt_inherited_save(&inherited);
	if (mt_options_parse(argc, argv, &options))
		return MT_EXIT_FAILURE;
	if (options.help || options.version || options.list_options) {
		if (options.help)
			mt_options_help(stdout);
		else if (options.version)
			printf("memtrack %s\n", PACKAGE_VERSION);
		else
			mt_options_list(stdout);
		return fflush(stdout) == 0 ? 0 : MT_EXIT_FAILURE;
	}
	mt_say_init(options.quiet);
	mt_inherited_change(&inherited);
	run.options = &options;
	run.inherited = &inherited;
	if (options.attach)
		return attach(&run);
	if (!options.command[0]) {
		mt_say_error("no command was given (memtrack-preload --help tells more)");
		return MT_EXIT_FAILURE;
	}
	run.has_child = true;
	return run_command(&run);
}
