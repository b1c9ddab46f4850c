/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "preload/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "common/control.h"
#include "common/raw_syscall.h"
#include "preload/early.h"
#include "preload/emit.h"
#include "preload/follow.h"
#include "preload/real.h"
#include "preload/sandbox.h"
#include "preload/session.h"
#include "preload/settings.h"
#include "preload/start.h"
#include "preload/thread.h"

enum { ATTACH_NOT_YET, ATTACH_RUNS, ATTACH_DONE };

/* A second thread waits this long for the first: longer than the first can take. */
#define WAIT_MS (MT_HELLO_WAIT_MS + 2000)
#define WAIT_NS 1000000

#ifdef MT_HARNESS
void *mt_harness_segment;
#endif

static bool at_start; /* our constructor runs: nobody is in the middle of a call of malloc */
static struct mt_session session;
static bool started_session; /* or tried to: it is not yet in the environment */

/* How much address space the segment may take: a quarter of what the limit leaves. */
static uint64_t max_map_bytes(void)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	char text[64];
	uint64_t pages = 0, used;
	long fd, len, i;

	if (mt_syscall4(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit) < 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	fd = mt_syscall4(SYS_openat, AT_FDCWD, (long)"/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return limit.rlim_cur / 8;
	len = mt_syscall3(SYS_read, fd, (long)text, sizeof(text));
	(void)mt_syscall1(SYS_close, fd); /* nothing can be done about a failure */
	for (i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++)
		pages = pages * 10 + (uint64_t)(text[i] - '0');
	used = pages * getauxval(AT_PAGESZ);
	return used < limit.rlim_cur ? (limit.rlim_cur - used) / 4 : 0;
}

/* Maps the segment and closes its descriptor. */
static int map_segment(int fd, uint64_t total_bytes)
{
	const long sealed = F_SEAL_SHRINK | F_SEAL_GROW;
	long seals = mt_syscall2(SYS_fcntl, fd, F_GET_SEALS);
	void *map = MAP_FAILED;
	int error = -EINVAL;

	/* A segment that could shrink could kill the program with SIGBUS. */
	if (seals >= 0 && (seals & sealed) == sealed) {
#ifdef MT_HARNESS
		/* Both ends at one address: TSan knows nothing of memory that is mapped twice. */
		do {
			map = mt_load_acquire(&mt_harness_segment);
		} while (map == NULL);
		error = 0;
#else
		map = (void *)mt_syscall6(SYS_mmap, 0, (long)total_bytes, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_NORESERVE, fd, 0);
		error = mt_syscall_failed((long)map) ? (int)(long)map : 0;
#endif
	}
	(void)mt_syscall1(SYS_close, fd); /* nothing can be done about a failure */
	if (error != 0)
		return error;
	error = mt_producer_open(map, total_bytes, &mt_image.producer);
	if (error != 0) {
		(void)mt_syscall2(SYS_munmap, (long)map, (long)total_bytes); /* ours and whole */
		return error;
	}
	/* Old kernels lack it: dumps are then larger, nothing else. */
	(void)mt_syscall3(SYS_madvise, (long)map, (long)total_bytes, MADV_DONTDUMP);
	mt_image.producer.now_ns = mt_stamp_clock_ns;
	mt_image.segment_bytes = total_bytes;
	return 0;
}

/* The kernel only wipes anonymous memory; the page may lie in a part that comes from our file. */
static int make_page_wiped(void)
{
	long page = (long)&mt_wiped;
	long result = mt_syscall3(SYS_madvise, page, MT_PAGE_BYTES, MADV_WIPEONFORK);

	if (result != -EINVAL)
		return (int)result;
	result = mt_syscall6(SYS_mmap, page, MT_PAGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (mt_syscall_failed(result))
		return (int)result;
	return (int)mt_syscall3(SYS_madvise, page, MT_PAGE_BYTES, MADV_WIPEONFORK);
}

#if defined(__x86_64__)
#define MACHINE_COUNTER MT_COUNTER_TSC
#else
#define MACHINE_COUNTER MT_COUNTER_CNTVCT
#endif

/* An emulator may answer 0 to any advice and follow none; a kernel refuses what is no advice. */
static bool is_advice_ignored(void)
{
	return mt_syscall3(SYS_madvise, (long)&mt_wiped, MT_PAGE_BYTES, -1) == 0;
}

static int choose_stamp(uint32_t *ret_recording)
{
	const struct mt_shm_header *header = mt_image.producer.header;
	int mode = PR_TSC_ENABLE;

	switch (header->counter) {
	case MT_COUNTER_MONOTONIC:
		mt_image.stamp_mode = MT_STAMP_CLOCK;
		return 0;
	case MACHINE_COUNTER:
		/* Reading the counter may be forbidden (aarch64: Linux 6.12); exec keeps that. */
		if (mt_syscall2(SYS_prctl, PR_GET_TSC, (long)&mode) == 0 && mode == PR_TSC_SIGSEGV)
			*ret_recording = MT_RECORDING_SANDBOX;
		break;
	default:
		return -EINVAL;
	}
	mt_image.stamp_mode =
		(header->flags & MT_SHM_STRICT) != 0 ? MT_STAMP_STRICT : MT_STAMP_COUNTER;
	return 0;
}

static void record_early(void *context, const void *block, size_t size)
{
	mt_emit_after(context, MT_REC_MALLOC, block, size);
}

static int say_hello(uint64_t time_ns, uint32_t flags)
{
	struct mt_hello hello = {
		.magic = MT_HELLO_MAGIC,
		.version = MT_CONTROL_VERSION,
		.bytes = sizeof(hello),
		.time_ns = time_ns,
		.max_map_bytes = max_map_bytes(),
		.pid = (int32_t)mt_syscall0(SYS_getpid),
		.tid = (int32_t)mt_syscall0(SYS_gettid),
		.flags = flags,
	};
	uint64_t total_bytes;
	int fd;

	memcpy(hello.token, session.token, sizeof(hello.token));
	fd = mt_session_hello(&session, &hello, &total_bytes);
	return fd < 0 ? fd : map_segment(fd, total_bytes);
}

/* Those of who was not welcomed: the sidecar knows that, or cannot be told. */
static bool was_welcomed(int error)
{
	switch (error) {
	case -EAGAIN:
	case -ENOTCONN:
	case -ECONNREFUSED:
	case -ENOENT:
	case -EPROTO:
		return false;
	default:
		return true;
	}
}

/* Sets up what recording needs, once the segment is mapped. */
static int begin_recording(struct mt_thread *thread)
{
	uint32_t recording = MT_RECORDING_ON;
	int error = choose_stamp(&recording);

	if (error != 0)
		return error;
	/* Without it a child by a raw clone would write over our records: all are counted as lost.
	 */
	if (make_page_wiped() != 0)
		recording = MT_RECORDING_SANDBOX;
	mt_image.wipes_itself = is_advice_ignored();
	mt_thread_find_tid();
	mt_sandbox_note_time();
	mt_image.mmap_events = (mt_image.producer.header->flags & MT_SHM_MMAP_EVENTS) != 0;
	if (recording == MT_RECORDING_ON)
		(void)mt_thread_adopt(thread); /* without a slot each record is counted as lost */
	__atomic_store_n(&mt_image.recording, recording, __ATOMIC_SEQ_CST);
	mt_image_tell_past_us(); /* seq_cst: see there */
	if (recording == MT_RECORDING_ON)
		mt_early_each_live(record_early, thread);
	return 0;
}

/* Absent in other C libraries. They load us too, but what we know of threads is not true there. */
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* Returns why not, after a word to whoever has nobody else to tell it. */
static int decline_libc(char *const *environment)
{
	if (mt_settings_get(environment, MT_ENV_SESSION) == NULL && mt_follow_names_us(environment))
		mt_start_complain("the C library is not glibc");
	return -ENOSYS;
}

/* Finds the session, or, in the root image of manual use, starts one. */
static int find_session(char *const *environment, uint32_t *ret_flags)
{
	const char *value = mt_settings_get(environment, MT_ENV_SESSION);
	char started[MT_SESSION_VALUE_BYTES];
	int error;

	*ret_flags = 0;
	if (value == NULL) {
		if (!mt_follow_names_us(environment))
			return -ENOENT;
		error = mt_start_sidecar(environment, started, sizeof(started));
		started_session = true;
		/* The wait is one for the whole tree, and so is what was said. */
		memcpy(session.entry, MT_ENV_SESSION "=" MT_SESSION_NONE,
		       sizeof(MT_ENV_SESSION "=" MT_SESSION_NONE));
		if (error != 0)
			return error;
		value = started;
		*ret_flags = MT_HELLO_ROOT;
	}
	return mt_session_parse(value, &session) ? 0 : -EPROTO;
}

static bool is_bypassed(struct mt_thread *thread)
{
	bool reached;

	mt_guard_set(thread, MT_GUARD_CALL);
	reached = !mt_objects.executable_defines && mt_real_is_reached(at_start);
	mt_guard_set(thread, MT_GUARD_WRITE);
	return !reached;
}

/* Returns 0 when the image records, else why not. */
static int attach(struct mt_thread *thread)
{
	uint64_t time_ns = mt_stamp_clock_ns();
	char **environment = mt_settings_environment();
	uint32_t flags;
	int error;

	if (getauxval(AT_SECURE) != 0)
		return -EPERM;
	mt_follow_set_path(mt_objects.self_path);
	if (gnu_get_libc_version == NULL)
		return decline_libc(environment);
	error = find_session(environment, &flags);
	if (error != 0)
		return error;
	mt_follow.session = session.entry;
	if (is_bypassed(thread))
		flags |= MT_HELLO_BYPASSED;
	error = say_hello(time_ns, flags);
	if (error == 0) {
		mt_follow.on = (mt_image.producer.header->flags & MT_SHM_FOLLOW_ENV) != 0;
		error = begin_recording(thread);
	} else {
		/* Untracked ourselves, we still lead others to a session that goes on. */
		mt_follow.on = error != -ENOTCONN && error != -ECONNREFUSED &&
			       !mt_settings_is_off(environment, "MEMTRACK_FOLLOW");
	}
	if (error != 0 && was_welcomed(error))
		(void)say_hello(time_ns, flags | MT_HELLO_VAIN); /* it is to be told, no more */
	if (error != 0 && (flags & MT_HELLO_ROOT) != 0)
		mt_start_complain("the sidecar did not take this process");
	return error;
}

static void wait_for_other(void)
{
	struct timespec slice = { .tv_nsec = WAIT_NS };
	int turns;

	for (turns = 0; turns < WAIT_MS; turns++) {
		if (mt_load_acquire(&mt_image.attaching) == ATTACH_DONE)
			return;
		/* Cut short by a signal, it only makes us look again sooner. */
		(void)mt_syscall2(SYS_nanosleep, (long)&slice, 0);
	}
	/* We are the child of a fork that came in the middle of it: nobody will finish. */
	mt_store_release(&mt_image.attaching, ATTACH_DONE);
	mt_store_release(&mt_image.recording, MT_RECORDING_OFF);
}

void mt_attach(void)
{
	struct mt_thread *thread = &mt_thread;
	uint32_t not_yet = ATTACH_NOT_YET;
	uint64_t guard = thread->guard;

	if (mt_likely(mt_load_acquire(&mt_image.attaching) == ATTACH_DONE) || !mt_real_resolve())
		return;
	mt_guard_set(thread, MT_GUARD_WRITE);
	if (!mt_cas_acq_rel(&mt_image.attaching, &not_yet, ATTACH_RUNS)) {
		wait_for_other();
	} else {
		if (attach(thread) != 0)
			mt_store_release(&mt_image.recording, MT_RECORDING_OFF);
		mt_store_release(&mt_image.attaching, ATTACH_DONE);
	}
	mt_guard_set(thread, guard);
}

#ifndef MT_HARNESS /* a test program attaches when its session is there */
__attribute__((constructor)) static void meet_at_start(void)
{
	at_start = true;
	mt_attach();
	at_start = false;
	/*
	 * Not sooner: a hook may have come before libc set its environment up. Also when it did not
	 * take us: it may take the rest of the tree.
	 */
	if (started_session)
		mt_settings_add(session.entry);
}
#endif
