/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a program's image meets the sidecar: one message each way over a Unix socket, once, then the
 * program closes it.
 *
 * The session is in the environment:
 *
 *   MEMTRACK_SESSION=1:<name>:<token>:<directory>
 *
 * <name> and <token> are 32 lower-case hexadecimal digits (128 random bits each). The socket is
 * SOCK_SEQPACKET, in the abstract namespace under the name "memtrack-<name>", and, for processes in
 * another network namespace, at the path <directory>/socket (the directory is private to the user
 * of the program; it may be empty when none could be made). The sidecar checks the token and takes
 * the process's number and user from SO_PEERCRED; numbers in the message only tell processes of
 * nested PID namespaces apart.
 *
 * The program sends struct mt_hello; the sidecar answers with struct mt_welcome, with the memfd as
 * SCM_RIGHTS when status is 0. Both are of one machine and build: native byte order, checked by
 * magic, version and size. The program waits for the answer MT_HELLO_WAIT_MS at most and runs
 * untracked when there is none; less when struct mt_pulse, in <directory>/pulse, says that the
 * sidecar has stopped (preload/pulse.h). The hello of a program that gave up still stands: a
 * sidecar that goes on finds it, and lists the program as one that it did not track.
 *
 * A program that was welcomed and cannot make use of it (no descriptor left to receive the memfd,
 * no room to map it) says the same hello once more with MT_HELLO_VAIN, and is answered
 * MT_WELCOME_ENDED: it then counts as untracked.
 *
 * Manual use: a root image without a session starts the sidecar itself, as
 *   memtrack-sidecar --attach <pid> --ready-fd <fd>
 * and reads the value of MEMTRACK_SESSION from that descriptor (ended by a newline; or an error
 * text after '!'), then says hello as others do and puts the value into its environment. When no
 * sidecar could be started it puts MEMTRACK_SESSION=none there: the rest of the tree does not try
 * again, which may take a wait. A sidecar that cannot answer ends.
 */
#ifndef MT_COMMON_CONTROL_H
#define MT_COMMON_CONTROL_H

#include <assert.h>
#include <stdint.h>

#define MT_HELLO_MAGIC	   UINT64_C(0x314f4c4c45484d54)
#define MT_CONTROL_VERSION 1u
#define MT_HELLO_WAIT_MS   10000
#define MT_TOKEN_BYTES	   16

#define MT_ENV_SESSION	 "MEMTRACK_SESSION"
#define MT_SESSION_NONE	 "none"
#define MT_SOCKET_PREFIX "memtrack-"
#define MT_SOCKET_FILE	 "socket"
#define MT_PULSE_FILE	 "pulse"
/* Where --max-wait is shorter an answer may still take this long: the machine may be busy. */
#define MT_PULSE_LEAST_MS 500

enum mt_hello_flags {
	MT_HELLO_ROOT = 1 << 0, /* the image that started the session (manual use) */
	MT_HELLO_BYPASSED =
		1 << 1,		/* another malloc comes before ours: we see nothing of its heap */
	MT_HELLO_LEFT = 1 << 2, /* the sidecar's own: it has gone, or waits no more */
	MT_HELLO_VAIN = 1 << 3, /* said again: welcomed, it could not make use of it */
};

struct mt_hello {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes; /* of this structure */
	uint8_t token[MT_TOKEN_BYTES];
	uint64_t time_ns;	/* CLOCK_MONOTONIC when the image met us first */
	uint64_t max_map_bytes; /* the most address space that the segment may take (ulimit -v) */
	int32_t pid;		/* as the process sees itself */
	int32_t tid;
	uint32_t flags;
	uint32_t reserved;
};

enum mt_welcome_status {
	MT_WELCOME_OK = 0,
	MT_WELCOME_ENDED = 1,	/* the session is over: run on, say nothing */
	MT_WELCOME_REFUSED = 2, /* wrong token, version or user */
	MT_WELCOME_FULL = 3,	/* no memory or descriptor for another image */
};

struct mt_welcome {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes;
	uint32_t status; /* enum mt_welcome_status */
	uint32_t reserved;
	uint64_t total_bytes; /* of the memfd */
};

/* The sidecar's sign of life. Read and written as a whole or by the field, never mapped. */
struct mt_pulse {
	uint64_t magic;
	uint32_t version;
	uint32_t max_wait_ms; /* --max-wait */
	uint64_t beat_ns;     /* CLOCK_MONOTONIC: the sidecar was alive */
	uint64_t given_up_ns; /* by programs: beat_ns as it was when one had waited in vain */
};

static_assert(sizeof(struct mt_hello) == 64, "wire format");
static_assert(sizeof(struct mt_welcome) == 32, "wire format");
static_assert(sizeof(struct mt_pulse) == 32, "wire format");

#endif
