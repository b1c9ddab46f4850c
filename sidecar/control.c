/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "sidecar/child.h"
#include "sidecar/patience.h"

/* Clients that have connected and said nothing yet. An honest one speaks at once. */
#define CLIENTS_MAX	 128
#define CLIENT_WAIT_MS	 2000
#define ACCEPTS_A_SERVE	 256
#define LISTENERS	 2
#define TRIES		 16
#define EVENTS_A_SERVE	 64
#define LISTENER_BACKLOG 4096
#define HOLD_MS		 5 /* between looks whether there is room again */

/* What a client is told. */
struct welcome {
	uint32_t status;
	int memory; /* -1: none */
	uint64_t total_bytes;
};

struct client {
	int fd; /* -1: free */
	struct ucred peer;
	uint64_t deadline_ms;
	/* One that could not be sent yet, when it has a memory: the kernel limits the descriptors
	 * that are under way, and others may have sent many. */
	struct welcome unsent;
};

/* Newer than some C libraries. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

struct mt_control {
	int epoll_fd;
	int listeners[LISTENERS]; /* -1: none */
	int reserve;		  /* given up for a moment to turn a client away at the limit */
	uid_t owner;
	uint8_t token[MT_TOKEN_BYTES];
	mt_control_hello_fn *on_hello;
	mt_control_room_fn *has_room;
	bool holds; /* the listeners do not call */
	void *context;
	struct mt_control_counts counts;
	int client_count;
	int unsent_count; /* clients whose welcome waits */
	struct client clients[CLIENTS_MAX];
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/*
 * Clients have no descriptors to send us, and one that comes all the same is closed when its
 * message is read or thrown away. Closing may take as long as its owner likes (SO_LINGER). Linux
 * before 6.16 cannot refuse them.
 */
static void refuse_descriptors(int fd)
{
	const int take = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &take, sizeof(take));
}

static int listen_at(const struct sockaddr_un *address, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	fd = mt_move_fd_high(fd);
	/* The file gets the socket's mode; where that cannot be, its folder keeps others out. */
	(void)fchmod(fd, 0600);
	refuse_descriptors(fd);
	if (bind(fd, (const struct sockaddr *)address, len) == 0 &&
	    listen(fd, LISTENER_BACKLOG) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int listen_abstract(const struct mt_session *session)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int len = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
			   MT_SOCKET_PREFIX "%s", session->name);

	return listen_at(&address,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len));
}

static int listen_path(const struct mt_session *session)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (!session->directory[0])
		return -ENOENT;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" MT_SOCKET_FILE,
		 session->directory);
	return listen_at(&address, sizeof(address));
}

static int add_to_epoll(struct mt_control *control, int fd, uint32_t tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = tag };

	return epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int mt_control_open(const struct mt_session *session, mt_control_hello_fn *on_hello,
		    mt_control_room_fn *has_room, void *context, struct mt_control **ret_control)
{
	struct mt_control *control = calloc(1, sizeof(*control));
	int i, fd, err = -ENOMEM;

	if (!control)
		return -ENOMEM;
	for (i = 0; i < CLIENTS_MAX; i++) {
		control->clients[i].fd = -1;
		control->clients[i].unsent.memory = -1;
	}
	control->listeners[0] = control->listeners[1] = -1;
	control->reserve = mt_move_fd_high(open("/dev/null", O_RDONLY | O_CLOEXEC));
	control->owner = session->owner;
	memcpy(control->token, session->token, sizeof(control->token));
	control->on_hello = on_hello;
	control->has_room = has_room;
	control->context = context;
	fd = epoll_create1(EPOLL_CLOEXEC);
	control->epoll_fd = fd < 0 ? -1 : mt_move_fd_high(fd);
	if (fd < 0) {
		err = -errno;
		goto fail;
	}
	control->listeners[0] = listen_abstract(session);
	control->listeners[1] = listen_path(session);
	/* One of them is enough for most: a sandbox may forbid the other. */
	if (control->listeners[0] < 0 && control->listeners[1] < 0) {
		err = control->listeners[0];
		goto fail;
	}
	for (i = 0; i < LISTENERS; i++) {
		err = control->listeners[i] < 0 ? 0
						: add_to_epoll(control, control->listeners[i],
							       CLIENTS_MAX + (uint32_t)i);
		if (err)
			goto fail;
	}
	*ret_control = control;
	return 0;

fail:
	mt_control_close(control);
	return err;
}

int mt_control_fd(const struct mt_control *control)
{
	return control->epoll_fd;
}

void mt_control_counts(const struct mt_control *control, struct mt_control_counts *ret_counts)
{
	*ret_counts = control->counts;
	ret_counts->unheard +=
		(uint64_t)control->unsent_count; /* so far, and for good at the end */
}

/* Its welcome is done with, one way or the other. */
static void forget_unsent(struct mt_control *control, struct client *client)
{
	if (client->unsent.memory < 0)
		return;
	close(client->unsent.memory);
	client->unsent.memory = -1;
	control->unsent_count--;
}

/* Whatever it is dropped for, a program that waits in vain for its welcome runs untracked. */
static void drop_client(struct mt_control *control, struct client *client)
{
	control->counts.unheard += client->unsent.memory >= 0;
	forget_unsent(control, client);
	close(client->fd); /* leaves the epoll set by this */
	client->fd = -1;
	control->client_count--;
}

/* Of the kernel's, which may pass. */
static bool is_shortage(int error)
{
	return error == EINTR || error == ENOBUFS || error == ENOMEM || error == ETOOMANYREFS;
}

/* After a call that failed: is it worth another try? Counts down `tries`. */
static bool try_again(int error, int *tries)
{
	return is_shortage(error) && ((*tries)-- > 0 || (error == ENOMEM && mt_patience(false)));
}

/* Returns false when the kernel had no room for it: it may be sent later. */
static bool send_welcome(int fd, const struct welcome *told)
{
	struct mt_welcome welcome = { .magic = MT_HELLO_MAGIC,
				      .version = MT_CONTROL_VERSION,
				      .bytes = sizeof(welcome),
				      .status = told->status,
				      .total_bytes = told->total_bytes };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { .iov_base = &welcome, .iov_len = sizeof(welcome) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int tries = TRIES;

	if (told->memory >= 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &told->memory, sizeof(told->memory));
	}
	/* A client that has gone, or does not read, does without: it runs on untracked. */
	while (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (!is_shortage(errno))
			return true;
		if (tries-- == 0)
			return false;
	}
	return true;
}

static void send_refusal(int fd, uint32_t status)
{
	const struct welcome told = { .status = status, .memory = -1 };

	(void)send_welcome(fd, &told); /* without a word it runs on untracked as well */
}

/* The time it takes must not tell how much of the token was right. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
	unsigned difference = 0;
	size_t i;

	for (i = 0; i < MT_TOKEN_BYTES; i++)
		difference |= (unsigned)(a[i] ^ b[i]);
	return difference == 0;
}

static bool is_valid(const struct mt_control *control, const struct mt_hello *hello, size_t len)
{
	return len == sizeof(*hello) && hello->magic == MT_HELLO_MAGIC &&
	       hello->version == MT_CONTROL_VERSION && hello->bytes == sizeof(*hello) &&
	       same_token(hello->token, control->token);
}

/* It gave up the wait, or was killed in it: an answer would not be read. */
static bool has_left(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, 0) > 0 && poller.revents & POLLHUP;
}

/* Returns false when the welcome is still to be sent. */
static bool answer(struct mt_control *control, int fd, const struct ucred *peer,
		   struct mt_hello *hello, size_t len, struct welcome *ret_unsent)
{
	struct welcome told = { .memory = -1 };

	/* Without a number in our PID namespace we could follow nothing of it. */
	if (!is_valid(control, hello, len) || peer->pid <= 0) {
		control->counts.refused++;
		send_refusal(fd, MT_WELCOME_REFUSED);
		return true;
	}
	hello->flags &= ~(uint32_t)MT_HELLO_LEFT;
	if (has_left(fd))
		hello->flags |= MT_HELLO_LEFT;
	told.status = control->on_hello(control->context, peer->pid, hello, &told.memory,
					&told.total_bytes);
	if (told.status == MT_WELCOME_OK)
		control->counts.welcomed++;
	else if (told.status == MT_WELCOME_FULL)
		control->counts.full++;
	if (!send_welcome(fd, &told) && told.memory >= 0) {
		*ret_unsent = told;
		return false;
	}
	if (told.memory >= 0)
		close(told.memory);
	return true;
}

/* Returns false while the client has said nothing, or could not be told yet. */
static bool read_hello(struct mt_control *control, int fd, const struct ucred *peer,
		       struct welcome *ret_unsent)
{
	struct mt_hello hello;
	int tries = TRIES;
	ssize_t n;

	do {
		n = recv(fd, &hello, sizeof(hello), MSG_DONTWAIT | MSG_TRUNC);
	} while (n < 0 && try_again(errno, &tries));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0)
		return answer(control, fd, peer, &hello, (size_t)n, ret_unsent);
	if (n < 0 && is_shortage(errno))
		control->counts.unheard++;
	return true;
}

static unsigned clients_of(const struct mt_control *control, pid_t pid)
{
	unsigned count = 0;

	for (int i = 0; i < CLIENTS_MAX; i++)
		count += control->clients[i].fd >= 0 && control->clients[i].peer.pid == pid;
	return count;
}

/*
 * When all entries are taken, the process that has the most of them loses its oldest: one that was
 * stopped between connect and hello does not pay for another one's flood.
 */
static struct client *free_entry(struct mt_control *control)
{
	struct client *victim = NULL;
	unsigned most = 0;

	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &control->clients[i];
		unsigned count;

		if (client->fd < 0)
			return client;
		count = clients_of(control, client->peer.pid);
		if (count > most || (count == most && client->deadline_ms < victim->deadline_ms)) {
			most = count;
			victim = client;
		}
	}
	drop_client(control, victim);
	return victim;
}

static void keep_unsent(struct mt_control *control, struct client *client,
			const struct welcome *unsent)
{
	client->unsent = *unsent;
	if (unsent->memory >= 0)
		control->unsent_count++;
}

static void keep_client(struct mt_control *control, int fd, const struct ucred *peer,
			const struct welcome *unsent)
{
	struct client *client = free_entry(control);

	if (add_to_epoll(control, fd, (uint32_t)(client - control->clients)) < 0) {
		control->counts.unheard++;
		if (unsent->memory >= 0)
			close(unsent->memory);
		close(fd);
		return;
	}
	keep_unsent(control, client, unsent);
	client->fd = fd;
	client->peer = *peer;
	client->deadline_ms = now_ms() + CLIENT_WAIT_MS;
	control->client_count++;
}

static void admit(struct mt_control *control, int fd)
{
	struct welcome unsent = { .memory = -1 };
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);
	int tries = TRIES;

	while (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		if (try_again(errno, &tries))
			continue;
		control->counts.unheard++;
		close(fd);
		return;
	}
	/* The abstract name is open to all users of the machine: others are not even listened to.
	 * A root session follows its programs through setuid(). */
	if (peer.uid != control->owner && peer.uid != 0 && control->owner != 0) {
		control->counts.refused++;
		close(fd);
		return;
	}
	if (read_hello(control, fd, &peer, &unsent))
		close(fd);
	else
		keep_client(control, fd, &peer, &unsent);
}

/* At the limit of descriptors: takes a client off the queue and lets it go unserved. */
static void turn_away(struct mt_control *control, int listener)
{
	int fd;

	if (control->reserve < 0)
		return;
	close(control->reserve);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		send_refusal(fd, MT_WELCOME_FULL);
		control->counts.full++;
		control->counts.unheard++;
		close(fd);
	}
	control->reserve = mt_move_fd_high(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static bool has_room(const struct mt_control *control)
{
	return !control->has_room || control->has_room(control->context);
}

/* While there is no room the listeners must not wake the loop all the time. */
static void hold_or_let_in(struct mt_control *control)
{
	bool holds = !has_room(control);
	int i;

	if (holds == control->holds)
		return;
	control->holds = holds;
	for (i = 0; i < LISTENERS; i++) {
		struct epoll_event event = { .events = holds ? 0 : EPOLLIN,
					     .data.u32 = CLIENTS_MAX + (uint32_t)i };

		if (control->listeners[i] >= 0)
			(void)epoll_ctl(control->epoll_fd, EPOLL_CTL_MOD, control->listeners[i],
					&event);
	}
}

static void accept_all(struct mt_control *control, int listener)
{
	int i, fd;

	for (i = 0; i < ACCEPTS_A_SERVE && has_room(control); i++) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			admit(control, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			turn_away(control, listener);
			return;
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static void drop_late(struct mt_control *control)
{
	uint64_t now = now_ms();
	int i;

	for (i = 0; control->client_count && i < CLIENTS_MAX; i++) {
		struct client *client = &control->clients[i];

		if (client->fd >= 0 && now >= client->deadline_ms)
			drop_client(control, client);
	}
}

static void send_unsent(struct mt_control *control)
{
	for (int i = 0; control->unsent_count && i < CLIENTS_MAX; i++) {
		struct client *client = &control->clients[i];

		if (client->fd >= 0 && client->unsent.memory >= 0 &&
		    send_welcome(client->fd, &client->unsent)) {
			forget_unsent(control, client);
			drop_client(control, client);
		}
	}
}

/* Something came from a client that is kept, or it has gone. */
static void hear(struct mt_control *control, struct client *client)
{
	struct welcome unsent = { .memory = -1 };

	/* It has nothing to say while it waits for its welcome. */
	if (client->unsent.memory >= 0 || read_hello(control, client->fd, &client->peer, &unsent))
		drop_client(control, client);
	else
		keep_unsent(control, client, &unsent);
}

int mt_control_timeout_ms(const struct mt_control *control)
{
	if (control->unsent_count)
		return 1;
	if (control->holds)
		return HOLD_MS;
	return control->client_count ? CLIENT_WAIT_MS / 4 : -1;
}

void mt_control_serve(struct mt_control *control)
{
	struct epoll_event events[EVENTS_A_SERVE];
	int i, n;

	hold_or_let_in(control);
	n = epoll_wait(control->epoll_fd, events, EVENTS_A_SERVE, 0);
	for (i = 0; i < n; i++) {
		uint32_t tag = events[i].data.u32;

		if (tag < CLIENTS_MAX) {
			struct client *client = &control->clients[tag];

			/* An earlier event of this round may have dropped it. */
			if (client->fd >= 0)
				hear(control, client);
		} else if (tag - CLIENTS_MAX < LISTENERS) {
			accept_all(control, control->listeners[tag - CLIENTS_MAX]);
		}
	}
	send_unsent(control);
	drop_late(control);
	hold_or_let_in(control);
}

void mt_control_close(struct mt_control *control)
{
	int i;

	if (!control)
		return;
	for (i = 0; i < CLIENTS_MAX; i++) {
		if (control->clients[i].fd >= 0)
			drop_client(control, &control->clients[i]);
	}
	for (i = 0; i < LISTENERS; i++) {
		if (control->listeners[i] >= 0)
			close(control->listeners[i]);
	}
	if (control->reserve >= 0)
		close(control->reserve);
	if (control->epoll_fd >= 0)
		close(control->epoll_fd);
	free(control);
}
