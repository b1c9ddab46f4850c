/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the kernel says of the tracked tree: fork, exec, exit of processes and
 * threads, executable file mappings. Hides where it comes from.
 *
 * Sources, each probed by itself (see struct mt_kernel_report):
 *   process events     tp_btf, else raw tracepoints, else classic tracepoints
 *                      (eBPF), else perf task records, else none; perf knows
 *                      no exit status, no vfork and no exec flags
 *   mappings at exec   the VMA iterator in sched_process_exec, else perf MMAP2
 *   mappings later     fentry, else perf MMAP2 (inherited from the command),
 *                      else /proc/PID/maps read by the caller
 *
 * Every number is of the PID namespace of the sidecar unless a name says
 * otherwise. Times are CLOCK_MONOTONIC nanoseconds.
 *
 * Order: mt_kernel_drain() gives, in the order of their times, all records that
 * were complete in the kernel's rings when it was called, from all rings and
 * sources together, each mapping once (exec-time mappings are not reported
 * twice when both sources see them), Exec before the mappings of its image.
 * A record whose syscall returned before the call is among them.
 *
 * Owner and threads: one owner; open, attach, drain and close are called by one
 * thread at a time.
 */
#ifndef MT_SIDECAR_KERNEL_H
#define MT_SIDECAR_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mt_kernel;

enum mt_kev_type {
	MT_KEV_FORK = 1, /* a new process: pid/tid the child, parent_pid/parent_tid who forked */
	MT_KEV_EXEC,	 /* pid has a new image; path is its file, exec_flags says how it is made */
	/*
	 * The last thread of pid has ended; exit_status as of wait(2), or -1: not known. It ends
	 * all threads of pid: of two that ended at the same moment one may not have been told.
	 */
	MT_KEV_EXIT,
	MT_KEV_THREAD_EXIT, /* thread tid of pid has ended (also sent for the last one, before EXIT)
			     */
	MT_KEV_MAPPING,	    /* an executable file mapping; path_len 0: not known */
	/*
	 * From now on the kernel may tell nothing more of pid, which lives: its children, its next
	 * images and its end have to be found out otherwise. Any later word of it takes that back.
	 */
	MT_KEV_UNSEEN,
	MT_KEV_LOST, /* `lost` records of a ring did not fit and are gone */
};

/*
 * What a new image is like, as far as the kernel saw it at exec. A bit that is
 * set is true; that one is not set means something only with MT_EXEC_KNOWN (and
 * NO_PRELOAD only without MT_EXEC_ENV_UNKNOWN).
 */
enum {
	MT_EXEC_KNOWN = 1 << 0,	     /* the other bits are meaningful */
	MT_EXEC_SECURE = 1 << 1,     /* AT_SECURE: set-id or file capabilities */
	MT_EXEC_NO_INTERP = 1 << 2,  /* no program interpreter was mapped: static */
	MT_EXEC_FOREIGN = 1 << 3,    /* ELF class or machine is not the sidecar's */
	MT_EXEC_NO_PRELOAD = 1 << 4, /* the new environment holds no LD_PRELOAD that names us */
	MT_EXEC_VFORK = 1 << 5,	     /* FORK: the child shares its parent's memory until it execs */
	MT_EXEC_ENV_UNKNOWN = 1 << 6,  /* the environment could not be read to its end */
	MT_EXEC_MAPS_UNKNOWN = 1 << 7, /* its mappings do not follow: read /proc/PID/maps */
	MT_EXEC_GUESSED = 1 << 8,      /* FORK: not the kernel's word; it was before this time */
};

struct mt_kev {
	uint64_t time_ns;
	int32_t type; /* enum mt_kev_type */
	int32_t pid;
	int32_t tid;
	int32_t parent_pid;
	int32_t parent_tid;
	int32_t ns_pid; /* pid in its own (innermost) PID namespace; 0: not known */
	int32_t ns_tid;
	int32_t exit_status; /* -1: not known */
	uint32_t exec_flags; /* MT_EXEC_* */
	uint32_t lost;
	uint64_t addr; /* mapping */
	uint64_t len;
	uint64_t file_offset;
	uint64_t dev; /* major << 20 | minor */
	uint64_t ino;
	const char *path; /* not terminated; valid during the callback only */
	uint32_t path_len;
};

enum mt_kernel_level {
	MT_KERNEL_AUTO,	 /* the best that works */
	MT_KERNEL_FULL,	 /* eBPF process events and mappings, or an error */
	MT_KERNEL_BASIC, /* no eBPF: perf only */
	MT_KERNEL_OFF,
};

enum mt_kernel_perf_scope {
	MT_KERNEL_PERF_AUTO,
	MT_KERNEL_PERF_TREE, /* events that each fork inherits */
	MT_KERNEL_PERF_ALL,  /* of all processes, where that is allowed */
};

struct mt_kernel_options {
	enum mt_kernel_level level;
	/* Forces single sources, for tests: NULL or a name of struct mt_kernel_report. */
	const char *force_process;
	const char *force_exec_maps;
	const char *force_later_maps;
	enum mt_kernel_perf_scope perf_scope; /* forced by tests alone */
	const char *preload_name; /* what MT_EXEC_NO_PRELOAD looks for in LD_PRELOAD's value */
	size_t ring_bytes;	  /* of the eBPF ring; 0: default */
};

struct mt_kernel_report {
	const char *process;	/* "tp_btf", "raw_tp", "tracepoint", "perf", "none" */
	const char *exec_maps;	/* "vma_iter", "perf", "none" */
	const char *later_maps; /* "fentry", "perf", "none" */
	/* One line for the user when something is missing: what, why, what to do. Empty: nothing.
	 */
	char missing[256];
};

/*
 * Opens and attaches what can be had. Never fails for lack of privilege with
 * level AUTO: it then gives an object whose report says "none".
 * Returns 0 or a negative errno (FULL, or a forced source, that cannot be had; why is in
 * ret_report->missing).
 */
int mt_kernel_open(const struct mt_kernel_options *options, struct mt_kernel **ret_kernel,
		   struct mt_kernel_report *ret_report);

/*
 * Starts following the process `pid` of the caller's PID namespace (stopped before its exec, or
 * running, in manual use) and all that it will fork. Returns 0 or a negative errno.
 */
int mt_kernel_follow(struct mt_kernel *kernel, pid_t pid, struct mt_kernel_report *ret_report);

/* A callback must not call back into the object. */
typedef void mt_kernel_event_fn(void *context, const struct mt_kev *event);

/*
 * Drains all rings. Returns how many events it gave, or a negative errno. What came in while it
 * ran may be left for the next call. Needs no privilege.
 */
int mt_kernel_drain(struct mt_kernel *kernel, mt_kernel_event_fn *on_event, void *context);

/* A descriptor that polls readable when there may be something to drain, or -1. */
int mt_kernel_poll_fd(const struct mt_kernel *kernel);

/* NULL is accepted. Does not wait for the kernel to release the programs. */
void mt_kernel_close(struct mt_kernel *kernel);

#endif
