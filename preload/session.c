/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "common/raw_syscall.h"
#include "preload/pulse.h"

/* Where descriptors go while we use them: above what programs expect to be free. */
#define FD_HIGH 700
#define FD_LOW	3
/* A sidecar that runs answers within the first; in between it is looked at. */
#define FIRST_MS 2
#define SLICE_MS 50

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool mt_session_parse(const char *value, struct mt_session *ret_session)
{
	const char *c = value;
	size_t len = strlen(value);
	int i;

	if (len >= MT_SESSION_VALUE_BYTES || c[0] != '1' || c[1] != ':')
		return false;
	c += 2;
	for (i = 0; i < MT_SESSION_NAME_DIGITS; i++) {
		if (hex_digit(*c) < 0)
			return false;
		ret_session->name[i] = *c++;
	}
	ret_session->name[i] = '\0';
	if (*c++ != ':')
		return false;
	for (i = 0; i < MT_TOKEN_BYTES; i++) {
		int high = hex_digit(c[0]);
		int low = high < 0 ? -1 : hex_digit(c[1]);

		if (low < 0)
			return false;
		ret_session->token[i] = (uint8_t)(high << 4 | low);
		c += 2;
	}
	if (*c++ != ':')
		return false;
	memcpy(ret_session->entry, MT_ENV_SESSION "=", sizeof(MT_ENV_SESSION));
	memcpy(ret_session->entry + sizeof(MT_ENV_SESSION), value, len + 1);
	ret_session->directory = ret_session->entry + sizeof(MT_ENV_SESSION) + (c - value);
	return true;
}

int mt_fd_raise(int fd)
{
	long raised;

	if (fd < 0)
		return fd;
	raised = mt_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_HIGH);
	if (raised < 0 && fd >= FD_LOW)
		return fd;
	if (raised < 0)
		raised = mt_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_LOW);
	(void)mt_syscall1(SYS_close, fd); /* nothing can be done about a failure */
	return (int)raised;
}

static int connect_to(int fd, const struct sockaddr_un *address, size_t bytes)
{
	long result;

	do {
		result = mt_syscall3(SYS_connect, fd, (long)address, (long)bytes);
	} while (result == -EINTR);
	return (int)result;
}

/* The abstract name first; then the path, for those in another network namespace. */
static int connect_session(const struct mt_session *session, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t prefix = sizeof(MT_SOCKET_PREFIX) - 1;
	size_t len = strlen(session->directory);
	int error;

	memcpy(address.sun_path + 1, MT_SOCKET_PREFIX, prefix);
	memcpy(address.sun_path + 1 + prefix, session->name, MT_SESSION_NAME_DIGITS);
	error = connect_to(fd, &address,
			   offsetof(struct sockaddr_un, sun_path) + 1 + prefix +
				   MT_SESSION_NAME_DIGITS);
	if (error == 0 || len == 0)
		return error;
	if (len + sizeof("/" MT_SOCKET_FILE) > sizeof(address.sun_path))
		return error;
	memcpy(address.sun_path, session->directory, len);
	memcpy(address.sun_path + len, "/" MT_SOCKET_FILE, sizeof("/" MT_SOCKET_FILE));
	return connect_to(fd, &address, sizeof(address));
}

static int send_hello(int fd, const struct mt_hello *hello)
{
	long result;

	do {
		result = mt_syscall6(SYS_sendto, fd, (long)hello, sizeof(*hello), MSG_NOSIGNAL, 0,
				     0);
	} while (result == -EINTR);
	if (result < 0)
		return (int)result;
	return result == sizeof(*hello) ? 0 : -EIO;
}

/* Returns the memfd that came with the answer. */
static int receive_welcome(int fd, uint64_t *ret_total_bytes)
{
	struct mt_welcome welcome = { 0 };
	struct iovec part = { .iov_base = &welcome, .iov_len = sizeof(welcome) };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct cmsghdr *header;
	int memfd = -1;
	long result;

	do {
		result = mt_syscall3(SYS_recvmsg, fd, (long)&message, MSG_CMSG_CLOEXEC);
	} while (result == -EINTR);
	if (result < 0)
		return (int)result;
	header = CMSG_FIRSTHDR(&message);
	if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&memfd, CMSG_DATA(header), sizeof(memfd));
	if (result == sizeof(welcome) && welcome.magic == MT_HELLO_MAGIC &&
	    welcome.version == MT_CONTROL_VERSION && welcome.bytes == sizeof(welcome) &&
	    welcome.status == MT_WELCOME_OK && memfd >= 0) {
		*ret_total_bytes = welcome.total_bytes;
		return memfd;
	}
	if (memfd >= 0)
		(void)mt_syscall1(SYS_close, memfd); /* we never used it */
	else if (result == sizeof(welcome) && welcome.status == MT_WELCOME_OK)
		return -EMFILE; /* the kernel gives it to nobody who has no room for it */
	return welcome.status == MT_WELCOME_ENDED ? -ENOTCONN : -EPROTO;
}

static void limit_waits(int fd, int ms)
{
	struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	/* Without a limit the waits would still end with the sidecar: no reason to give up. */
	(void)mt_syscall5(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, (long)&limit, sizeof(limit));
	(void)mt_syscall5(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, (long)&limit, sizeof(limit));
}

/* One step came to nothing in its time: is it to be tried again? */
static bool go_on(int result, int fd, struct mt_pulse_wait *wait)
{
	if (result != -EAGAIN || !mt_pulse_go_on(wait))
		return false;
	limit_waits(fd, SLICE_MS);
	return true;
}

int mt_session_hello(const struct mt_session *session, const struct mt_hello *hello,
		     uint64_t *ret_total_bytes)
{
	int fd = (int)mt_syscall3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct mt_pulse_wait wait;
	int result;

	fd = mt_fd_raise(fd);
	if (fd < 0)
		return fd;
	mt_pulse_begin(&wait, session->directory);
	limit_waits(fd, FIRST_MS);
	do {
		result = connect_session(session, fd);
	} while (go_on(result, fd, &wait));
	if (result == 0) {
		do {
			result = send_hello(fd, hello);
		} while (go_on(result, fd, &wait));
	}
	if (result == 0) {
		do {
			result = receive_welcome(fd, ret_total_bytes);
		} while (go_on(result, fd, &wait));
	}
	(void)mt_syscall1(SYS_close, fd); /* nothing can be done about a failure */
	return result;
}
