/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * prctl and syscall, for the calls by which a program forbids itself what recording needs. We act
 * before the call, since after it may be too late, and take it back when the call fails.
 *
 * A filter may forbid any system call but those of the allocator: from then on waits spin, and time
 * is told by the counter. Strict mode, and PR_TSC_SIGSEGV, forbid reading the counter: recording
 * stops and what is missed is counted.
 */
#include "preload/sandbox.h"

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "common/raw_syscall.h"
#include "preload/attach.h"
#include "preload/emit.h"
#include "preload/hooks.h"
#include "preload/real.h"

/* The shortest time over which the counter's speed is measured: good to a thousandth. */
#define MEASURE_NS 200000

enum forbidden { FORBIDS_NOTHING, FORBIDS_CALLS, FORBIDS_COUNTER };

struct undo {
	enum forbidden forbidden;
	uint64_t epoch;
	uint32_t recording;
	uint32_t childs; /* 1: by a vfork child */
};

static uint64_t noted_counter;
static uint64_t noted_ns;
static uint64_t ticks_per_ms;

void mt_sandbox_note_time(void)
{
	if (mt_image.stamp_mode == MT_STAMP_CLOCK)
		return;
	noted_counter = mt_counter();
	noted_ns = mt_stamp_clock_ns();
}

static uint64_t counted_ns(void)
{
	uint64_t ticks = mt_counter() - noted_counter;

	return noted_ns + ticks / ticks_per_ms * 1000000u;
}

/* Measures the counter's speed while the clock may still be read. Once measured it is good. */
static void tell_time_by_counter(void)
{
	uint64_t ns, ticks;

	if (mt_image.stamp_mode == MT_STAMP_CLOCK || ticks_per_ms != 0)
		return;
	do {
		ns = mt_stamp_clock_ns() - noted_ns;
		ticks = mt_counter() - noted_counter;
	} while (ns < MEASURE_NS);
	ticks_per_ms = (uint64_t)((double)ticks * 1e6 / (double)ns);
	if (ticks_per_ms != 0)
		mt_image.producer.now_ns = counted_ns;
}

/*
 * Is this a child in its parent's memory? Asked before the first filter: there may be one that
 * kills who asks. (So a child's second filter stays in force for its parent, who then starts others
 * without us: they are listed.)
 */
static bool is_in_parents_memory(void)
{
	uint32_t slot = (uint32_t)mt_load_relaxed(&mt_wiped.epoch);
	int32_t pid;

	if (slot == 0 || mt_load_relaxed(&mt_image.producer.no_syscalls) != 0)
		return false;
	pid = mt_image.producer.procs[slot - 1].pid;
	return pid != 0 && (int32_t)mt_syscall0(SYS_getpid) != pid;
}

uint32_t mt_sandbox_end_child(void)
{
	uint32_t filters = mt_thread.child_filters;

	if (mt_unlikely(filters != 0)) {
		mt_thread.child_filters = 0;
		(void)mt_sub_acq_rel(&mt_image.producer.no_syscalls, filters);
	}
	return filters;
}

void mt_sandbox_resume_child(uint32_t filters)
{
	if (mt_unlikely(filters != 0)) {
		mt_thread.child_filters = filters;
		(void)mt_add_acq_rel(&mt_image.producer.no_syscalls, filters);
	}
}

static struct undo forbid(enum forbidden forbidden)
{
	struct undo undo = { .forbidden = forbidden };

	if (forbidden == FORBIDS_NOTHING)
		return undo;
	mt_attach();
	undo.recording = mt_load_acquire(&mt_image.recording);
	if (undo.recording != MT_RECORDING_ON)
		return (struct undo){ .forbidden = FORBIDS_NOTHING };
	if (forbidden == FORBIDS_CALLS) {
		tell_time_by_counter();
		undo.childs = is_in_parents_memory();
		mt_thread.child_filters += undo.childs;
		(void)mt_add_acq_rel(&mt_image.producer.no_syscalls, 1u); /* see take_back */
	} else if (mt_image.stamp_mode != MT_STAMP_CLOCK) {
		undo.epoch = mt_load_relaxed(&mt_wiped.epoch);
		mt_store_release(&mt_image.recording, MT_RECORDING_SANDBOX);
		mt_store_release(&mt_wiped.epoch, 0);
	}
	return undo;
}

/* A call that fails takes back its own mark alone: an earlier filter, or another's, stays. */
static void take_back(const struct undo *undo)
{
	if (undo->forbidden == FORBIDS_CALLS) {
		mt_thread.child_filters -= undo->childs;
		(void)mt_sub_acq_rel(&mt_image.producer.no_syscalls, 1u); /* as above */
	} else if (undo->forbidden == FORBIDS_COUNTER) {
		mt_store_release(&mt_wiped.epoch, undo->epoch);
		mt_store_release(&mt_image.recording, undo->recording);
	}
}

static enum forbidden by_prctl(int option, long argument)
{
	if (option == PR_SET_SECCOMP)
		return argument == SECCOMP_MODE_STRICT ? FORBIDS_COUNTER : FORBIDS_CALLS;
	if (option == PR_SET_TSC && argument == PR_TSC_SIGSEGV)
		return FORBIDS_COUNTER;
	return FORBIDS_NOTHING;
}

static enum forbidden by_syscall(long number, long first, long second)
{
	if (number == SYS_prctl)
		return by_prctl((int)first, second);
	if (number == SYS_seccomp && first == SECCOMP_SET_MODE_STRICT)
		return FORBIDS_COUNTER;
	if (number == SYS_seccomp && first == SECCOMP_SET_MODE_FILTER)
		return FORBIDS_CALLS;
	return FORBIDS_NOTHING;
}

MT_HOOK int mt_hook_prctl(int option, long a, long b, long c, long d) MT_LABEL("prctl");

/* The real one is variadic; what the caller did not pass is passed on as the garbage that it is. */
MT_HOOK int mt_hook_prctl(int option, long a, long b, long c, long d)
{
	struct undo undo;
	int result;

	(void)mt_real_resolve(); /* false only inside the look-up, which does not come here */
	undo = forbid(by_prctl(option, a));
	result = mt_real.prctl(option, a, b, c, d);
	if (result < 0)
		take_back(&undo);
	return result;
}

MT_HOOK long mt_hook_syscall(long number, long a, long b, long c, long d, long e, long f)
	MT_LABEL("syscall");

/*
 * All but a few calls go on by a jump, not by a call: the child of a raw clone then returns to the
 * program's frame and not to one of ours.
 */
MT_HOOK long mt_hook_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	struct undo undo;
	long result;

	(void)mt_real_resolve(); /* as above */
	if (mt_likely(by_syscall(number, a, b) == FORBIDS_NOTHING))
		return mt_real.syscall(number, a, b, c, d, e, f);
	undo = forbid(by_syscall(number, a, b));
	result = mt_real.syscall(number, a, b, c, d, e, f);
	if (result < 0)
		take_back(&undo);
	return result;
}
