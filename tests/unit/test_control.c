/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The socket's server against clients that are honest, mistaken and hostile. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "sidecar/control.h"

#define SILENT_CLIENTS 400

static struct mt_session session;
static struct mt_control *control;
static int hellos;
static pid_t last_pid;
static int left;     /* hellos of clients that were gone */
static bool no_room; /* the kernel takes no message with a descriptor */
static bool held;    /* there is no room for another image */

/* In place of the C library's. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (no_room && message->msg_controllen) {
		errno = ETOOMANYREFS;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

static uint32_t on_hello(void *context, pid_t pid, const struct mt_hello *hello, int *ret_fd,
			 uint64_t *ret_total_bytes)
{
	(void)context;
	hellos++;
	left += (hello->flags & MT_HELLO_LEFT) != 0;
	last_pid = pid;
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	*ret_total_bytes = 4711;
	return MT_WELCOME_OK;
}

static bool has_room(void *context)
{
	(void)context;
	return !held;
}

static void set_up(void)
{
	struct mt_identity identity = { .uid = getuid(), .gid = getgid() };

	cr_assert_eq(mt_session_open(&identity, &session), 0);
	cr_assert_eq(mt_control_open(&session, on_hello, has_room, NULL, &control), 0);
}

static void tear_down(void)
{
	mt_control_close(control);
	mt_session_close(&session);
}

TestSuite(control, .init = set_up, .fini = tear_down);

static int connect_client(bool by_path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), len;

	if (by_path)
		len = snprintf(address.sun_path, sizeof(address.sun_path), "%s/" MT_SOCKET_FILE,
			       session.directory);
	else
		len = 1 + snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
				   MT_SOCKET_PREFIX "%s", session.name);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)),
		     0, "connect: %s", strerror(errno));
	return fd;
}

static struct mt_hello good_hello(void)
{
	struct mt_hello hello = { .magic = MT_HELLO_MAGIC,
				  .version = MT_CONTROL_VERSION,
				  .bytes = sizeof(hello),
				  .max_map_bytes = UINT64_MAX };

	memcpy(hello.token, session.token, sizeof(hello.token));
	return hello;
}

/* Serves until the client can read or has been closed; the status, or -1 without an answer. */
static int answer_to(int fd, int *ret_memory)
{
	struct mt_welcome welcome;
	char space[CMSG_SPACE(sizeof(int))];
	struct iovec part = { .iov_base = &welcome, .iov_len = sizeof(welcome) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct pollfd ready[2] = { { .fd = mt_control_fd(control), .events = POLLIN },
				   { .fd = fd, .events = POLLIN } };
	ssize_t n;
	int rounds = 0;

	do {
		cr_assert_lt(rounds++, 1000, "no answer");
		poll(ready, 2, mt_control_timeout_ms(control));
		mt_control_serve(control);
	} while (!ready[1].revents);
	n = recvmsg(fd, &message, MSG_DONTWAIT);
	*ret_memory = -1;
	if (n <= 0)
		return -1;
	cr_assert_eq(n, (ssize_t)sizeof(welcome));
	if (CMSG_FIRSTHDR(&message))
		memcpy(ret_memory, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	cr_assert_eq(welcome.magic, MT_HELLO_MAGIC);
	return (int)welcome.status;
}

static int say(bool by_path, const void *bytes, size_t len, int *ret_memory)
{
	int fd = connect_client(by_path), status;

	cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
	status = answer_to(fd, ret_memory);
	close(fd);
	return status;
}

Test(control, both_ways_in_lead_to_a_welcome)
{
	struct mt_hello hello = good_hello();
	int memory;

	cr_assert_eq(say(false, &hello, sizeof(hello), &memory), MT_WELCOME_OK);
	cr_assert_geq(memory, 0, "the descriptor came along");
	close(memory);
	cr_assert_eq(last_pid, getpid());
	cr_assert_eq(say(true, &hello, sizeof(hello), &memory), MT_WELCOME_OK);
	close(memory);
	cr_assert_eq(hellos, 2);
}

Test(control, wrong_hellos_are_refused)
{
	struct mt_hello hello;
	struct mt_control_counts counts;
	char large[4096] = { 0 };
	int memory;

	hello = good_hello();
	hello.token[15] ^= 1;
	cr_assert_eq(say(false, &hello, sizeof(hello), &memory), MT_WELCOME_REFUSED);
	hello = good_hello();
	hello.version++;
	cr_assert_eq(say(false, &hello, sizeof(hello), &memory), MT_WELCOME_REFUSED);
	hello = good_hello();
	cr_assert_eq(say(false, &hello, sizeof(hello) - 1, &memory), MT_WELCOME_REFUSED);
	memcpy(large, &hello, sizeof(hello));
	cr_assert_eq(say(false, large, sizeof(large), &memory), MT_WELCOME_REFUSED);
	cr_assert_eq(hellos, 0);
	mt_control_counts(control, &counts);
	cr_assert_eq(counts.refused, 4);
}

Test(control, silent_clients_neither_block_nor_pile_up)
{
	static int silent[SILENT_CLIENTS];
	struct mt_hello hello = good_hello();
	int i, memory, closed = 0;
	char byte;

	for (i = 0; i < SILENT_CLIENTS; i++)
		silent[i] = connect_client(false);
	cr_assert_eq(say(false, &hello, sizeof(hello), &memory), MT_WELCOME_OK);
	close(memory);
	for (i = 0; i < SILENT_CLIENTS; i++)
		closed += recv(silent[i], &byte, 1, MSG_DONTWAIT) == 0;
	cr_assert_geq(closed, SILENT_CLIENTS - 128, "only so many are kept");
	/* The rest is let go after its time, without a word from anybody. */
	cr_assert_geq(mt_control_timeout_ms(control), 0);
	cr_assert_eq(answer_to(silent[SILENT_CLIENTS - 1], &memory), -1);
	for (i = 0; i < SILENT_CLIENTS; i++)
		close(silent[i]);
}

Test(control, a_client_that_is_gone_harms_nobody)
{
	struct mt_hello hello = good_hello();
	int fd = connect_client(false), memory;

	cr_assert_eq(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), (ssize_t)sizeof(hello));
	close(fd);
	cr_assert_eq(say(false, &hello, sizeof(hello), &memory), MT_WELCOME_OK);
	close(memory);
	cr_assert_eq(hellos, 2);
	cr_assert_eq(left, 1, "its hello says that it is gone");
	/* Nobody can say so of himself. */
	hello.flags |= MT_HELLO_LEFT;
	cr_assert_eq(say(false, &hello, sizeof(hello), &memory), MT_WELCOME_OK);
	close(memory);
	cr_assert_eq(left, 1);
}

/* Connects `count` clients that say hello while no welcome can be sent. */
static void greet_in_vain(int *clients, int count)
{
	struct mt_hello hello = good_hello();

	no_room = true;
	for (int i = 0; i < count; i++) {
		clients[i] = connect_client(false);
		cr_assert_eq(send(clients[i], &hello, sizeof(hello), MSG_NOSIGNAL),
			     (ssize_t)sizeof(hello));
		mt_control_serve(control);
	}
	cr_assert_eq(hellos, count);
}

static uint64_t unheard(void)
{
	struct mt_control_counts counts;

	mt_control_counts(control, &counts);
	return counts.unheard;
}

Test(control, a_welcome_that_waited_and_was_sent_is_no_loss)
{
	int client, memory;

	greet_in_vain(&client, 1);
	no_room = false;
	cr_assert_eq(answer_to(client, &memory), MT_WELCOME_OK);
	close(memory);
	cr_assert_eq(unheard(), 0);
	close(client);
}

Test(control, each_welcome_that_was_given_up_is_counted)
{
	static int clients[SILENT_CLIENTS];

	greet_in_vain(clients, SILENT_CLIENTS);
	/* Those beyond the limit, those that hang up, and those that are there at the end. */
	for (int i = 0; i < SILENT_CLIENTS; i += 3)
		close(clients[i]);
	mt_control_serve(control);
	cr_assert_eq(unheard(), SILENT_CLIENTS);
	for (int i = 1; i < SILENT_CLIENTS; i++)
		if (i % 3)
			close(clients[i]);
}

Test(control, while_there_is_no_room_hellos_wait_and_wake_nobody)
{
	struct mt_hello hello = good_hello();
	struct pollfd ready;
	int waiting[2], memory;

	held = true;
	for (int i = 0; i < 2; i++) {
		waiting[i] = connect_client(i == 1);
		cr_assert_eq(send(waiting[i], &hello, sizeof(hello), MSG_NOSIGNAL),
			     (ssize_t)sizeof(hello));
	}
	for (int i = 0; i < 10; i++)
		mt_control_serve(control);
	cr_assert_eq(hellos, 0);
	ready = (struct pollfd){ .fd = mt_control_fd(control), .events = POLLIN };
	cr_assert_eq(poll(&ready, 1, 0), 0, "the loop would spin");
	cr_assert_gt(mt_control_timeout_ms(control), 0);
	held = false;
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(answer_to(waiting[i], &memory), MT_WELCOME_OK);
		close(memory);
		close(waiting[i]);
	}
	cr_assert_eq(hellos, 2);
}
