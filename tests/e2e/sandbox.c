/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sandbox WHAT BLOCKS [PROGRAM ARGUMENT...]: forbids itself what recording may need, then takes
 * BLOCKS blocks of 80001 bytes and frees them. A call that is forbidden kills it.
 *   filter, seccomp       all system calls but those of an allocator: by prctl, by seccomp
 *   again                 the same by prctl, and then more, which the kernel refuses
 *   fork, clone           the same, but for those of fork; a child by fork, or by the system call,
 *                         takes as many blocks of 80002 bytes
 *   no_socket             making a socket
 *   strict, strict_call   SECCOMP_MODE_STRICT: by prctl, by seccomp
 *   counter               reading the processor's counter (PR_TSC_SIGSEGV)
 *   refused               nothing: the kernel takes none of its wrong requests
 * At last PROGRAM is executed. 77: not possible here.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALLOW(number)                                        \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* What fork and wait need comes first, so that a filter without them begins behind it. */
#define FOR_FORK 8

static struct sock_filter code[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(SYS_clone),
	ALLOW(SYS_wait4),
	ALLOW(SYS_set_robust_list),
	ALLOW(SYS_rt_sigprocmask),
	ALLOW(SYS_read),
	ALLOW(SYS_write),
	ALLOW(SYS_mmap),
	ALLOW(SYS_munmap),
	ALLOW(SYS_mremap),
	ALLOW(SYS_brk),
	ALLOW(SYS_exit_group),
	ALLOW(SYS_rt_sigreturn),
	ALLOW(SYS_prctl),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static long blocks;

static void take(size_t size)
{
	for (long i = 0; i < blocks; i++)
		free(malloc(size));
}

static int lock_down(int by_call, int with_fork)
{
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	if (!with_fork) {
		code[FOR_FORK] = code[0];
		program.filter += FOR_FORK;
		program.len -= FOR_FORK;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	if (by_call)
		return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Nobody says anything to the outside any more, but files and programs stay open to it. */
static int deny_socket(void)
{
	static struct sock_filter deny[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(deny) / sizeof(*deny), .filter = deny };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 77;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? 77 : 0;
}

/* True when the child ended well. */
static int ended_well(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int lock_down_again(void)
{
	if (lock_down(0, 0))
		return 77;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != -1 || errno != EFAULT)
		return 1;
	/* There is a filter already. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != -1 || errno != EINVAL ? 2 : 0;
}

static int make_child(int by_call)
{
	pid_t pid;

	if (lock_down(0, 1))
		return 77;
	pid = by_call ? (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L) : fork();
	if (pid == 0) {
		take(80002);
		_exit(0);
	}
	return ended_well(pid) ? 0 : 1;
}

/* Each of them fails, and leaves all as it was. */
static int ask_wrongly(void)
{
	struct sock_fprog empty = { .len = 0, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 77;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1L, NULL) != -1 || errno != EINVAL)
		return 1;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty) != -1 || errno != EINVAL)
		return 2;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &empty) != -1 || errno != EINVAL)
		return 3;
	return 0;
}

static int forbid(const char *what)
{
	if (!strcmp(what, "filter"))
		return lock_down(0, 0) ? 77 : 0;
	if (!strcmp(what, "again"))
		return lock_down_again();
	if (!strcmp(what, "seccomp"))
		return lock_down(1, 0) ? 77 : 0;
	if (!strcmp(what, "fork") || !strcmp(what, "clone"))
		return make_child(!strcmp(what, "clone"));
	if (!strcmp(what, "no_socket"))
		return deny_socket();
	if (!strcmp(what, "strict"))
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) ? 77 : 0;
	if (!strcmp(what, "strict_call"))
		return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0L, NULL) ? 77 : 0;
	if (!strcmp(what, "counter"))
		return prctl(PR_SET_TSC, PR_TSC_SIGSEGV) ? 77 : 0;
	return strcmp(what, "refused") ? 95 : ask_wrongly();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int status;

	blocks = argc > 2 ? atol(argv[2]) : 1000;
	/* Before the lock, so that the heap is there. */
	free(malloc(80000));
	status = forbid(what);
	if (status)
		return status;
	take(80001);
	/* exit_group is not allowed in strict mode. */
	if (!strncmp(what, "strict", 6))
		syscall(SYS_exit, 0);
	if (argc > 3)
		return execv(argv[3], argv + 3), 3;
	_exit(0);
}
