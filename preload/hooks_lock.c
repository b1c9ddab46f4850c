/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mlockall, which would make the kernel allocate the whole segment, most of which is never touched:
 * hundreds of MiB. No mapping of a memfd is exempt from it, so we lock all that is mapped without
 * faulting it in, take our segment out, and then have the rest faulted in, mapping by mapping. The
 * segment stays unlocked and does not count against the program's limit of locked memory.
 *
 * The kernel's own first test, whether all that is mapped fits into that limit, still counts it.
 */
#include "preload/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "common/raw_syscall.h"
#include "preload/image.h"
#include "preload/real.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

/* /proc/self/maps, read piece by piece. */
struct maps {
	long fd;
	long len, at;
	char bytes[2048];
};

/* The next character; 0 at the end. */
static char next_char(struct maps *maps)
{
	if (maps->at == maps->len) {
		maps->at = 0;
		do {
			maps->len = mt_syscall3(SYS_read, maps->fd, (long)maps->bytes,
						sizeof(maps->bytes));
		} while (maps->len == -EINTR);
		if (maps->len <= 0) {
			maps->len = 0;
			return 0;
		}
	}
	return maps->bytes[maps->at++];
}

static uintptr_t next_hex(struct maps *maps)
{
	uintptr_t value = 0;

	for (;;) {
		char c = next_char(maps);

		if (c >= '0' && c <= '9')
			value = value << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return value; /* what ends it is dropped: '-' or a blank */
	}
}

/* Locks each mapping but the segment, as mlockall does: what cannot be faulted in is passed over.
 */
static void fault_in(struct maps *maps)
{
	uintptr_t segment = (uintptr_t)mt_image.producer.header;

	for (;;) {
		uintptr_t from = next_hex(maps);
		uintptr_t to = next_hex(maps);
		char c;

		if (to == 0)
			return;
		if (from != segment)
			(void)mt_syscall2(SYS_mlock, (long)from, (long)(to - from)); /* see above */
		do {
			c = next_char(maps);
		} while (c != '\n' && c != 0);
	}
}

/* False when it could not even begin: then nothing has changed. */
static bool lock_all_but_us(int flags)
{
	struct maps maps = { .fd = mt_syscall4(SYS_openat, AT_FDCWD, (long)"/proc/self/maps",
					       O_RDONLY | O_CLOEXEC, 0) };
	bool locked;

	if (maps.fd < 0)
		return false;
	locked = mt_syscall1(SYS_mlockall, flags | MCL_ONFAULT) == 0;
	if (locked) {
		/* Mappings to come are locked as the program wants them. */
		if ((flags & (MCL_FUTURE | MCL_ONFAULT)) == MCL_FUTURE)
			(void)mt_syscall1(SYS_mlockall, MCL_FUTURE); /* as the call before it */
		(void)mt_syscall2(SYS_munlock, (long)mt_image.producer.header,
				  (long)mt_image.segment_bytes); /* ours and mapped */
		if ((flags & MCL_ONFAULT) == 0)
			fault_in(&maps);
	}
	(void)mt_syscall1(SYS_close, maps.fd); /* nothing can be done about a failure */
	return locked;
}

MT_HOOK int MT_NAME(mlockall)(int flags)
{
	(void)mt_real_resolve(); /* false only inside the look-up, which does not come here */
	if ((flags & MCL_CURRENT) != 0 && mt_image.segment_bytes != 0 &&
	    mt_load_relaxed(&mt_image.producer.no_syscalls) == 0 && lock_all_but_us(flags))
		return 0;
	return mt_real.mlockall(flags);
}
