/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sandbox filter|again|strict BLOCKS: forbids itself all system calls but those that an allocator
 * needs, then takes BLOCKS blocks of 80001 bytes and frees them. Any other call kills it. With
 * `again` it then tries to set one more filter, in vain.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number)                                        \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int lock_down(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
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
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	long blocks = argc > 2 ? atol(argv[2]) : 1000;
	int strict = argc > 1 && !strcmp(argv[1], "strict");

	/* Before the lock, so that the heap is there. */
	free(malloc(80000));
	if (strict ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : lock_down())
		return 77;
	if (argc > 1 && !strcmp(argv[1], "again") &&
	    (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != -1 || errno != EFAULT))
		return 1;
	for (long i = 0; i < blocks; i++)
		free(malloc(80001));
	/* exit_group is not allowed in strict mode. */
	if (strict)
		syscall(SYS_exit, 0);
	_exit(0);
}
