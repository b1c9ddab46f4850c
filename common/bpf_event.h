/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The records that the eBPF programs put into their ring. One producer (bpf/),
 * one consumer (sidecar/kernel_bpf.c), always of the same build, so there is no
 * version; the consumer still checks every length, because a record is input.
 *
 *   struct mt_bpf_event | path, path_len bytes | value, value_len bytes
 *
 * value is that of LD_PRELOAD in the new environment (EXEC only). Neither
 * string is terminated.
 *
 * This file also builds with -target bpf: fixed widths, nothing from libc.
 */
#ifndef MT_COMMON_BPF_EVENT_H
#define MT_COMMON_BPF_EVENT_H

#include <linux/types.h>

enum mt_bpf_type {
	MT_BPF_FORK = 1,
	MT_BPF_EXEC,
	MT_BPF_EXIT, /* a thread; MT_BPF_LAST_THREAD says that its process ends too */
	MT_BPF_MAPPING,
};

enum {
	MT_BPF_SHARED_VM = 1 << 0,     /* FORK: the child has its parent's memory */
	MT_BPF_LAST_THREAD = 1 << 1,   /* EXIT */
	MT_BPF_AUXV = 1 << 2,	       /* EXEC: the three flags below are meaningful */
	MT_BPF_SECURE = 1 << 3,	       /* AT_SECURE is set */
	MT_BPF_NO_INTERP = 1 << 4,     /* AT_BASE is 0 */
	MT_BPF_COMPAT = 1 << 5,	       /* the image is a 32-bit one on a 64-bit kernel */
	MT_BPF_ENV = 1 << 6,	       /* EXEC: the whole environment was read */
	MT_BPF_PRELOAD = 1 << 7,       /* EXEC: it has LD_PRELOAD; its value follows the path */
	MT_BPF_MAPS = 1 << 8,	       /* EXEC: its mappings follow, all of them */
	MT_BPF_PATH_TOO_LONG = 1 << 9, /* the path is left out */
};

struct mt_bpf_event {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 type;    /* enum mt_bpf_type */
	__u32 flags;   /* MT_BPF_* */
	__s32 pid;     /* as the session's PID namespace numbers it, like all without ns_ */
	__s32 tid;
	__s32 parent_pid;
	__s32 parent_tid;
	__s32 ns_pid; /* in the innermost namespace */
	__s32 ns_tid;
	__s32 exit_status;
	__u32 path_len;
	__u32 value_len;
	__u32 reserved;
	__u64 addr;
	__u64 len;
	__u64 file_offset;
	__u64 dev; /* major << 20 | minor */
	__u64 ino;
};

/*
 * Calls of kernel functions (kfuncs) are written as calls of helpers with these
 * numbers, which no helper has; the loader puts the functions' BTF ids there.
 */
enum {
	MT_BPF_CALL_VMA_NEW = 0x4d540001,
	MT_BPF_CALL_VMA_NEXT,
	MT_BPF_CALL_VMA_DESTROY,
};

#define MT_BPF_PATH_MAX	 4096u
#define MT_BPF_VALUE_MAX 1024u

_Static_assert(sizeof(struct mt_bpf_event) == 96, "the record has no hidden padding");

#endif
