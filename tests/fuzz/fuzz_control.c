/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sidecar's socket against clients that are made of the fuzzer's bytes: they connect, send
 * messages of any length with any content, with or without descriptors, and hang up, in any order.
 * Nobody without the token is heard, and when all have gone no descriptor is left.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sidecar/control.h"
#include "tests/fuzz/fuzz_input.h"

#define CLIENTS	    8
#define MESSAGE_MAX 4096
#define OPS_MAX	    256

static struct mt_session session;

static uint32_t on_hello(void *context, pid_t pid, const struct mt_hello *hello, int *ret_fd,
			 uint64_t *ret_total_bytes)
{
	(void)context;
	fuzz_must(pid == getpid(), "the number is the peer's");
	fuzz_must(memcmp(hello->token, session.token, MT_TOKEN_BYTES) == 0, "the token is right");
	fuzz_must(hello->magic == MT_HELLO_MAGIC && hello->version == MT_CONTROL_VERSION &&
			  hello->bytes == sizeof(*hello),
		  "the message is one of ours");
	*ret_total_bytes = 4096;
	if ((hello->flags & 3) == 0)
		*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return hello->flags & 3;
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static int connect_client(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int len = 1 + snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
			       MT_SOCKET_PREFIX "%s", session.name);

	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A hello that is right, but for the bytes that the input puts over it. */
static size_t make_message(struct fuzz_input *in, uint8_t *message)
{
	struct mt_hello hello = { .magic = MT_HELLO_MAGIC,
				  .version = MT_CONTROL_VERSION,
				  .bytes = sizeof(hello),
				  .max_map_bytes = UINT64_MAX };
	size_t len = sizeof(hello), at = (size_t)fuzz_take(in, 1), run;
	const uint8_t *bytes = fuzz_take_run(in, MESSAGE_MAX - 256, &run);

	memcpy(hello.token, session.token, sizeof(hello.token));
	memset(message, 0, MESSAGE_MAX);
	memcpy(message, &hello, sizeof(hello));
	if (run)
		memcpy(message + at, bytes, run);
	if (run && at + run > len)
		len = at + run;
	if (at > sizeof(hello))
		len = at - sizeof(hello); /* shorter ones too */
	return len;
}

static void send_message(struct fuzz_input *in, int client, int with_descriptors)
{
	uint8_t message[MESSAGE_MAX];
	struct iovec part = { .iov_base = message, .iov_len = make_message(in, message) };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct msghdr all = { .msg_iov = &part, .msg_iovlen = 1 };
	int descriptors[2] = { client, client };

	if (with_descriptors) {
		all.msg_control = &control;
		all.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(descriptors));
		memcpy(CMSG_DATA(&control.header), descriptors, sizeof(descriptors));
	}
	/* That it is refused, or gone, is part of the game. */
	(void)sendmsg(client, &all, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void act(struct fuzz_input *in, struct mt_control *control, int *clients)
{
	unsigned op = (unsigned)fuzz_take(in, 1);
	int *client = &clients[(op >> 3) % CLIENTS];

	if ((op & 7) == 7) {
		mt_control_serve(control);
		return;
	}
	if (*client < 0) {
		*client = connect_client();
	} else if ((op & 7) == 0) {
		close(*client);
		*client = -1;
	} else if ((op & 7) == 1) {
		(void)shutdown(*client, (int)(op >> 6) % 3);
	} else {
		send_message(in, *client, (op & 7) == 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mt_identity identity = { .uid = getuid(), .gid = getgid() };
	struct fuzz_input in = { data, size };
	struct mt_control *control;
	int clients[CLIENTS], before;

	if (!session.name[0]) {
		fuzz_must(mt_session_open(&identity, &session) == 0, "a session opens");
		/* One name is enough here, and leaves nothing behind. */
		mt_session_close(&session);
		session.directory[0] = 0;
	}
	before = count_descriptors();
	fuzz_must(mt_control_open(&session, on_hello, NULL, NULL, &control) == 0, "it listens");
	memset(clients, 0xff, sizeof(clients));
	for (int i = 0; i < OPS_MAX && in.left; i++)
		act(&in, control, clients);
	mt_control_serve(control);
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i] >= 0)
			close(clients[i]);
	mt_control_serve(control);
	mt_control_close(control);
	fuzz_must(count_descriptors() == before, "no descriptor is left");
	return 0;
}
