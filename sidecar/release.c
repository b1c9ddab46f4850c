/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/release.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel takes 253 in a message. */
#define PASSED_MAX 250

static int open_descriptors(int *fds, int max)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0, fd;

	if (!dir)
		return 0;
	while (count < max && (entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (fd > 2 && fd != dirfd(dir))
			fds[count++] = fd;
	}
	closedir(dir);
	return count;
}

/*
 * Detaching eBPF programs and perf events waits for grace periods of the kernel's RCU, up to tens
 * of milliseconds when the last reference is dropped by close() or by the end of the process. Here
 * the last reference is in a message that lies unread in a socket, and the only references to both
 * of its ends are in that message too: garbage, which the kernel collects in a thread of its own.
 * (Kernels before 6.9 collect it in the close: then nothing is gained and nothing lost.)
 */
void mt_release_later(void)
{
	int pair[2], fds[PASSED_MAX + 2], count;
	union {
		char bytes[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control;
	char byte = 0;
	struct iovec part = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *header;

	count = open_descriptors(fds, PASSED_MAX);
	if (count == 0 || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	fds[count++] = pair[0];
	fds[count++] = pair[1];
	memset(&control, 0, sizeof(control));
	message.msg_control = control.bytes;
	message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	memcpy(CMSG_DATA(header), fds, (size_t)count * sizeof(int));
	/* Refused, at a limit of the user: the end of the process closes all as ever. */
	if (sendmsg(pair[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	while (count > 0)
		close(fds[--count]);
}
