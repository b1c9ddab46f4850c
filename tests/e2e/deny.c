/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * deny ERRNO NUMBER[,NUMBER...] COMMAND...: runs the command where these system calls fail with
 * that error, as in a container with a seccomp profile; 99 when no filter can be set.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NUMBERS_MAX 64

static struct sock_filter filter[2 + 2 * NUMBERS_MAX];

static unsigned short build(char *numbers, uint32_t error)
{
	const uint32_t number_at = offsetof(struct seccomp_data, nr);
	unsigned short n = 0;

	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number_at);
	while (*numbers && n < 2 * NUMBERS_MAX) {
		uint32_t number = (uint32_t)strtoul(numbers, &numbers, 10);

		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
		filter[n++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
		if (*numbers == ',')
			numbers++;
		else if (*numbers)
			return 0;
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return n;
}

int main(int argc, char **argv)
{
	struct sock_fprog program = { .filter = filter };

	if (argc < 4)
		return 98;
	program.len = build(argv[2], (uint32_t)atoi(argv[1]));
	if (!program.len)
		return 98;
	/* As root no_new_privs is not needed, and would change what set-id programs are. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)))
		return 99;
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 97;
}
