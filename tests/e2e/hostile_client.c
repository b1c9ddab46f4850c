/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hostile_client HOW: what a program of the tree, or another one that learned of the session, can
 * do to the sidecar's socket. Tries the abstract name and the path. Prints how many welcomes it
 * got.
 *
 *   token     hellos whose token is wrong in one bit, each bit in turn
 *   length    messages of 1 byte to 64 KiB, right but for their length
 *   silent    1,000 connections that say nothing, kept open until the parent ends them
 *   fds       messages with as many descriptors as go in, right and wrong ones
 *   linger    descriptors whose last close() waits: TCP sockets with unsent bytes and SO_LINGER
 *   repeat    3,000 right hellos of one and the same image, whose segments nobody uses
 *   hoard     200 right hellos, and in each segment some thousand threads and processes claimed
 *   once      one right hello
 *   hoards    the same by 200 processes
 *   noise     messages of random bytes, from several processes at once
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/chunk.h"
#include "common/control.h"

#define DESCRIPTORS 200
#define SILENT	    1000
#define REPEATS	    3000
#define LARGEST	    65536
#define LINGERERS   20
#define HOARDS	    200
#define CLAIMED	    4096

static char name[33], directory[108];
static struct mt_hello hello = {
	.magic = MT_HELLO_MAGIC,
	.version = MT_CONTROL_VERSION,
	.bytes = sizeof(hello),
	.max_map_bytes = UINT64_MAX,
};
static unsigned welcomes;

static int read_session(void)
{
	const char *value = getenv(MT_ENV_SESSION);
	char token[33];
	unsigned byte;

	if (!value || sscanf(value, "1:%32[0-9a-f]:%32[0-9a-f]:%107s", name, token, directory) < 2)
		return -1;
	for (int i = 0; i < MT_TOKEN_BYTES; i++) {
		if (sscanf(token + 2 * i, "%2x", &byte) != 1)
			return -1;
		hello.token[i] = (uint8_t)byte;
	}
	hello.pid = hello.tid = getpid();
	return 0;
}

static int connect_to(int by_path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval wait = { .tv_sec = 5 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), len;

	if (by_path)
		len = snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/" MT_SOCKET_FILE,
			       directory);
	else
		len = 1 + snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
				   MT_SOCKET_PREFIX "%s", name);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* What is done with the memory that comes with a welcome. */
static void (*use_memory)(int memory, uint64_t bytes);

/* Sends one message, takes the answer, if any, and counts a welcome. */
static void say(const void *message, size_t len, int by_path)
{
	struct mt_welcome answer = { .status = MT_WELCOME_REFUSED };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { .iov_base = &answer, .iov_len = sizeof(answer) };
	struct msghdr all = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fd = connect_to(by_path), memory;

	if (fd < 0)
		return;
	if (send(fd, message, len, MSG_NOSIGNAL) == (ssize_t)len &&
	    recvmsg(fd, &all, MSG_CMSG_CLOEXEC) == sizeof(answer) &&
	    answer.status == MT_WELCOME_OK) {
		welcomes++;
		if (all.msg_controllen >= sizeof(control.header)) {
			memcpy(&memory, CMSG_DATA(&control.header), sizeof(memory));
			if (use_memory)
				use_memory(memory, answer.total_bytes);
			close(memory);
		}
	}
	close(fd);
}

static void try_tokens(void)
{
	for (int bit = 0; bit < 8 * MT_TOKEN_BYTES; bit++) {
		struct mt_hello wrong = hello;

		wrong.token[bit / 8] ^= (uint8_t)(1 << bit % 8);
		say(&wrong, sizeof(wrong), bit & 1);
	}
}

static void try_lengths(void)
{
	static uint8_t message[LARGEST];

	memcpy(message, &hello, sizeof(hello));
	for (size_t len = 1; len < 200; len++)
		if (len != sizeof(hello))
			say(message, len, len & 1);
	for (size_t len = 256; len <= LARGEST; len *= 2)
		say(message, len, 0);
}

static void stay_silent(void)
{
	for (int i = 0; i < SILENT; i++)
		if (connect_to(i & 1) < 0)
			break;
	pause();
}

/* Sends a hello that is wrong, whole or in part, with descriptors. False: they were not taken. */
static bool send_with(const int *descriptors, size_t count, int by_path, int whole)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
	} control = { 0 };
	struct mt_hello mine = hello;
	struct iovec part = { .iov_base = &mine, .iov_len = whole ? sizeof(mine) : 7 };
	struct msghdr all = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	int fd = connect_to(by_path);
	bool taken;

	mine.token[0] ^= 1;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
	taken = sendmsg(fd, &all, MSG_NOSIGNAL) >= 0;
	close(fd);
	return taken;
}

static void send_descriptors(void)
{
	int descriptors[DESCRIPTORS];

	for (int i = 0; i < DESCRIPTORS; i++)
		descriptors[i] = dup(0);
	for (int i = 0; i < 200; i++)
		(void)send_with(descriptors, DESCRIPTORS, i & 1, !(i & 2));
}

/* A TCP socket whose peer reads nothing, full of bytes, which waits for them when it is closed. */
static int make_lingerer(int listener)
{
	static char bytes[1 << 20];
	struct linger linger = { .l_onoff = 1, .l_linger = 30 };
	struct sockaddr_in address;
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (getsockname(listener, (struct sockaddr *)&address, &len) < 0 ||
	    connect(fd, (struct sockaddr *)&address, len) < 0)
		exit(3);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

static void send_lingerers(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, LINGERERS) < 0)
		exit(3);
	for (int i = 0; i < LINGERERS; i++) {
		fd = make_lingerer(listener);
		/* One that was not taken stays open: closing it would make us wait. */
		if (send_with(&fd, 1, i & 1, i & 2))
			close(fd);
	}
	pause();
}

static void repeat(void)
{
	for (int i = 0; i < REPEATS; i++) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		hello.time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		say(&hello, sizeof(hello), 0);
	}
}

static void claim_many(int memory, uint64_t bytes)
{
	struct mt_shm_header *header =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
	char *base = (char *)header;

	if (header == MAP_FAILED)
		exit(3);
	for (uint32_t i = 0; i < CLAIMED; i++) {
		struct mt_thread_slot *thread =
			(struct mt_thread_slot *)(base + header->threads_offset) + i;
		struct mt_proc_slot *proc =
			(struct mt_proc_slot *)(base + header->procs_offset) + i;

		thread->tid = proc->pid = proc->tid = 400000000 + (int32_t)i;
		proc->parent = i ? 1 : 0;
		thread->state = proc->state = MT_SLOT_ACTIVE;
	}
	header->thread_bump = header->proc_bump = CLAIMED;
	munmap(header, bytes);
}

static void hoard(void)
{
	use_memory = claim_many;
	for (int i = 0; i < HOARDS; i++)
		say(&hello, sizeof(hello), 0);
}

static void hoard_together(void)
{
	use_memory = claim_many;
	for (int i = 0; i < HOARDS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			say(&hello, sizeof(hello), 0);
			_exit(welcomes != 1);
		}
		welcomes += pid > 0 && waitpid(pid, &(int){ 0 }, 0) == pid;
	}
}

static void say_once(void)
{
	say(&hello, sizeof(hello), 0);
	say(&hello, sizeof(hello), 1);
}

static void make_noise(void)
{
	uint64_t message[32], value = 88172645463325252u + (uint64_t)getpid();

	for (int i = 0; i < 500; i++) {
		for (size_t at = 0; at < 32; at++) {
			value ^= value << 13;
			value ^= value >> 7;
			value ^= value << 17;
			message[at] = value;
		}
		say(message, value % sizeof(message), i & 1);
	}
}

static void make_noise_together(void)
{
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			make_noise();
			_exit(welcomes != 0);
		}
	}
	for (int i = 0, status; i < 4; i++)
		if (wait(&status) > 0 && status != 0)
			welcomes++;
}

static const struct attack {
	const char *name;
	void (*run)(void);
} attacks[] = {
	{ "token", try_tokens },	  { "length", try_lengths },	{ "silent", stay_silent },
	{ "fds", send_descriptors },	  { "repeat", repeat },		{ "once", say_once },
	{ "noise", make_noise_together }, { "linger", send_lingerers }, { "hoard", hoard },
	{ "hoards", hoard_together },
};

int main(int argc, char **argv)
{
	if (argc != 2 || read_session() < 0) {
		fprintf(stderr, "hostile_client: no session, or not one argument\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
		if (strcmp(argv[1], attacks[i].name) != 0)
			continue;
		attacks[i].run();
		printf("%u\n", welcomes);
		return 0;
	}
	return 2;
}
