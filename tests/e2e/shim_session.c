/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tests/e2e/shim_session.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static uint8_t token[MT_TOKEN_BYTES];

int mt_test_session_open(char *value, size_t value_bytes)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint8_t name[16];
	char digits[33], token_digits[33];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int i;

	if (getrandom(name, sizeof(name), 0) != sizeof(name) ||
	    getrandom(token, sizeof(token), 0) != sizeof(token))
		return -1;
	for (i = 0; i < 16; i++) {
		sprintf(digits + 2 * i, "%02x", name[i]);
		sprintf(token_digits + 2 * i, "%02x", token[i]);
	}
	snprintf(value, value_bytes, "1:%s:%s:", digits, token_digits);
	memcpy(address.sun_path + 1, MT_SOCKET_PREFIX, 9);
	memcpy(address.sun_path + 10, digits, 32);
	if (bind(fd, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 42) !=
		    0 ||
	    listen(fd, 1024) != 0)
		return -1;
	return fd;
}

static int send_segment(int connection, const struct mt_shm *shm)
{
	struct mt_welcome answer = { .magic = MT_HELLO_MAGIC,
				     .version = MT_CONTROL_VERSION,
				     .bytes = sizeof(answer),
				     .total_bytes = shm->layout.total_bytes };
	struct iovec part = { .iov_base = &answer, .iov_len = sizeof(answer) };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &shm->fd, sizeof(int));
	return sendmsg(connection, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int mt_test_session_welcome(int listener, const struct mt_shm_options *options,
			    struct mt_hello *ret_hello, struct mt_shm *ret_shm)
{
	struct mt_shm_options mine = *options;
	int connection = accept(listener, NULL, NULL);
	int result = -1;

	if (connection < 0)
		return -1;
	if (recv(connection, ret_hello, sizeof(*ret_hello), 0) != sizeof(*ret_hello) ||
	    memcmp(ret_hello->token, token, sizeof(token)) != 0)
		goto out;
	mine.max_map_bytes = ret_hello->max_map_bytes;
	if (mt_shm_create(&mine, ret_shm) != 0)
		goto out;
	result = send_segment(connection, ret_shm);
	close(ret_shm->fd);
	ret_shm->fd = -1;
	if (result != 0)
		mt_shm_destroy(ret_shm);
out:
	close(connection);
	return result;
}
