// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * kernel_trace [options] -- command: runs a command, follows it through
 * sidecar/kernel.h and prints what that gives as JSON lines, the report first.
 * Ends when the command has ended and all processes that were seen to start.
 * Exit status: 0; 77 a forced source cannot be had (the reason is on stderr); 1.
 */
#include "sidecar/kernel.h"

#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_NO_SOURCE = 77 };

struct trace {
	struct mt_kernel_options options;
	uid_t drop_uid;	   /* 0: keep */
	bool deny;	   /* no bpf(2) and no perf_event_open(2) */
	bool times;	   /* print what open, follow and close cost */
	bool drain_at_end; /* nothing is drained before the command has ended */
	long live;	   /* processes that have started and not ended */
	unsigned long given[MT_KEV_LOST + 1];
	FILE *out;
};

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void print_text(FILE *out, const char *text, uint32_t len)
{
	uint32_t i;

	putc('"', out);
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\' || c < 0x20 || c >= 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

static const char *const type_names[] = { "?",		"Fork",	   "Exec",   "Exit",
					  "ThreadExit", "Mapping", "Unseen", "Lost" };

static const struct {
	uint32_t flag;
	const char *name;
} flag_names[] = {
	{ MT_EXEC_KNOWN, "known" },
	{ MT_EXEC_SECURE, "secure" },
	{ MT_EXEC_NO_INTERP, "no_interp" },
	{ MT_EXEC_FOREIGN, "foreign" },
	{ MT_EXEC_NO_PRELOAD, "no_preload" },
	{ MT_EXEC_VFORK, "vfork" },
	{ MT_EXEC_ENV_UNKNOWN, "env_unknown" },
	{ MT_EXEC_MAPS_UNKNOWN, "maps_unknown" },
};

static void print_flags(FILE *out, uint32_t flags)
{
	const char *comma = "";
	size_t i;

	fputs(",\"flags\":[", out);
	for (i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++) {
		if (!(flags & flag_names[i].flag))
			continue;
		fprintf(out, "%s\"%s\"", comma, flag_names[i].name);
		comma = ",";
	}
	putc(']', out);
}

static void on_event(void *context, const struct mt_kev *event)
{
	struct trace *trace = context;
	FILE *out = trace->out;

	trace->given[event->type]++;
	if (event->type == MT_KEV_FORK)
		trace->live++;
	else if (event->type == MT_KEV_EXIT || event->type == MT_KEV_UNSEEN)
		trace->live--;
	fprintf(out, "{\"type\":\"%s\",\"time\":%llu,\"pid\":%d,\"tid\":%d",
		type_names[event->type], (unsigned long long)event->time_ns, event->pid,
		event->tid);
	switch (event->type) {
	case MT_KEV_FORK:
		fprintf(out, ",\"parent_pid\":%d,\"parent_tid\":%d", event->parent_pid,
			event->parent_tid);
		break;
	case MT_KEV_EXIT:
		fprintf(out, ",\"status\":%d", event->exit_status);
		break;
	case MT_KEV_MAPPING:
		fprintf(out,
			",\"addr\":\"%llx\",\"end\":\"%llx\",\"offset\":\"%llx\",\"dev\":\"%02llx:%"
			"02llx\""
			",\"ino\":%llu",
			(unsigned long long)event->addr,
			(unsigned long long)(event->addr + event->len),
			(unsigned long long)event->file_offset,
			(unsigned long long)(event->dev >> 20),
			(unsigned long long)(event->dev & 0xfffff), (unsigned long long)event->ino);
		break;
	case MT_KEV_LOST:
		fprintf(out, ",\"lost\":%u", event->lost);
		break;
	default:
		break;
	}
	if (event->type == MT_KEV_EXEC || event->type == MT_KEV_FORK)
		print_flags(out, event->exec_flags);
	if (event->ns_pid && event->ns_pid != event->pid)
		fprintf(out, ",\"ns_pid\":%d,\"ns_tid\":%d", event->ns_pid, event->ns_tid);
	if (event->type == MT_KEV_EXEC || event->type == MT_KEV_MAPPING) {
		fputs(",\"path\":", out);
		print_text(out, event->path, event->path_len);
	}
	fputs("}\n", out);
}

/* Forks the command; it waits for a byte before its exec. Returns its pid. */
static pid_t command_start(char **argv, int *ret_go)
{
	int go[2];
	char byte;
	pid_t pid;

	if (pipe(go))
		return -1;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(125);
		close(go[0]);
		execvp(argv[0], argv);
		fprintf(stderr, "kernel_trace: %s: %s\n", argv[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

static int drain(struct trace *trace, struct mt_kernel *kernel)
{
	int given = mt_kernel_drain(kernel, on_event, trace);

	if (given < 0)
		fprintf(stderr, "kernel_trace: drain: %s\n", strerror(-given));
	return given;
}

/* Until the command has ended, and all that it has started; at most a minute after it. */
static void follow(struct trace *trace, struct mt_kernel *kernel, pid_t pid)
{
	struct pollfd poll_fd = { .fd = mt_kernel_poll_fd(kernel), .events = POLLIN };
	bool ended = false;
	double deadline = 0;
	int status;

	trace->live = 1;
	while (!ended || (trace->live > 0 && now_ms() < deadline)) {
		poll(&poll_fd, 1, 10);
		if (!ended && waitpid(pid, &status, WNOHANG) == pid) {
			ended = true;
			deadline = now_ms() + (poll_fd.fd < 0 ? 0 : 60000);
		}
		if (ended || !trace->drain_at_end)
			drain(trace, kernel);
		if (ended && trace->given[MT_KEV_LOST])
			break;
	}
	while (drain(trace, kernel) > 0)
		;
	fprintf(trace->out, "{\"type\":\"End\",\"status\":%d}\n", status);
}

/* Denies bpf(2) and perf_event_open(2), as the filters of containers do. */
static int deny(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int options_read(struct trace *trace, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "level", required_argument, NULL, 'l' },
		{ "process", required_argument, NULL, 'p' },
		{ "exec-maps", required_argument, NULL, 'e' },
		{ "later-maps", required_argument, NULL, 'm' },
		{ "preload-name", required_argument, NULL, 'n' },
		{ "ring", required_argument, NULL, 'r' },
		{ "drop-uid", required_argument, NULL, 'u' },
		{ "output", required_argument, NULL, 'o' },
		{ "drain-at-end", no_argument, NULL, 'd' },
		{ "times", no_argument, NULL, 't' },
		{ "perf-tree", no_argument, NULL, 'i' },
		{ "perf-all", no_argument, NULL, 'a' },
		{ "deny", no_argument, NULL, 'D' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		switch (c) {
		case 'l':
			trace->options.level = strcmp(optarg, "full") == 0    ? MT_KERNEL_FULL
					       : strcmp(optarg, "basic") == 0 ? MT_KERNEL_BASIC
					       : strcmp(optarg, "off") == 0   ? MT_KERNEL_OFF
									      : MT_KERNEL_AUTO;
			break;
		case 'p':
			trace->options.force_process = optarg;
			break;
		case 'e':
			trace->options.force_exec_maps = optarg;
			break;
		case 'm':
			trace->options.force_later_maps = optarg;
			break;
		case 'n':
			trace->options.preload_name = optarg;
			break;
		case 'r':
			trace->options.ring_bytes = strtoul(optarg, NULL, 0);
			break;
		case 'u':
			trace->drop_uid = (uid_t)atoi(optarg);
			break;
		case 'o':
			trace->out = fopen(optarg, "we");
			break;
		case 'd':
			trace->drain_at_end = true;
			break;
		case 'D':
			trace->deny = true;
			break;
		case 'i':
			trace->options.perf_scope = MT_KERNEL_PERF_TREE;
			break;
		case 'a':
			trace->options.perf_scope = MT_KERNEL_PERF_ALL;
			break;
		case 't':
			trace->times = true;
			break;
		default:
			return -1;
		}
	}
	return optind < argc && trace->out ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct trace trace = { .out = stdout, .options.preload_name = "libmemtrack-preload.so" };
	struct mt_kernel_report report;
	struct mt_kernel *kernel;
	double start, opened, followed;
	pid_t pid;
	int go, err;

	if (options_read(&trace, argc, argv)) {
		fprintf(stderr, "usage: kernel_trace [options] -- command\n");
		return 1;
	}
	pid = command_start(argv + optind, &go);
	if (pid < 0)
		return 1;
	if (trace.deny && deny()) {
		perror("seccomp");
		return 1;
	}
	start = now_ms();
	err = mt_kernel_open(&trace.options, &kernel, &report);
	opened = now_ms();
	if (!err) {
		err = mt_kernel_follow(kernel, pid, &report);
		followed = now_ms();
		if (err)
			mt_kernel_close(kernel);
	}
	if (err) {
		fprintf(stderr, "kernel_trace: %s: %s\n", strerror(-err), report.missing);
		return err == -ENOTSUP || err == -EPERM || err == -EACCES ? EXIT_NO_SOURCE : 1;
	}
	if (trace.drop_uid && setuid(trace.drop_uid)) {
		perror("setuid");
		return 1;
	}
	fprintf(trace.out,
		"{\"type\":\"Report\",\"process\":\"%s\",\"exec_maps\":\"%s\",\"later_maps\":\"%"
		"s\","
		"\"root\":%d,\"missing\":\"%s\"}\n",
		report.process, report.exec_maps, report.later_maps, pid, report.missing);
	if (write(go, "", 1) != 1)
		return 1;
	close(go);
	follow(&trace, kernel, pid);
	if (trace.times) {
		double closing = now_ms();

		mt_kernel_close(kernel);
		fprintf(stderr, "open %.2f ms, follow %.2f ms, close %.2f ms\n", opened - start,
			followed - opened, now_ms() - closing);
	} else {
		mt_kernel_close(kernel);
	}
	return fclose(trace.out) ? 1 : 0;
}
