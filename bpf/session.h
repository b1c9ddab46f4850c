/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What all programs share: settings, maps, scratch memory, and which process is
 * followed under which number. Included by process.bpf.c alone.
 */
#ifndef MT_BPF_SESSION_H
#define MT_BPF_SESSION_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpf/kernel_types.h"
#include "common/bpf_event.h"

/* Set by the loader before the load: a constant to the verifier. */
const volatile __u32 mt_page_shift = 12;

/*
 * The sidecar's PID namespace, as found by session_find(): its level below the
 * first one, and its address, which is only compared.
 */
__u64 mt_session_ns = 0;
__u32 mt_session_level = 0;

/* Records that found no room in the ring, and processes that found none in the table. */
__u64 mt_lost = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} mt_ring SEC(".maps");

/* The processes that are followed, by their pid in the session's namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 14);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __s32);
	__type(value, __u32);
} mt_followed SEC(".maps");

#define MT_ENV_CHUNK  4096u
#define MT_AUXV_WORDS 64

/*
 * What the loops carry along stands in a map and not on the stack: the verifier
 * knows nothing of its values, so it follows each path through a loop once
 * instead of once for every combination of them.
 */
struct mt_walk { /* see path_write() */
	struct dentry *dentry;
	struct mount *mount;
	struct dentry *root_dentry;
	struct vfsmount *root_mnt;
	__u32 start; /* of the path in its zone */
	__u32 done;
};

struct mt_auxv { /* see image_read() */
	__u32 flags;
	__u32 compat;
	__u32 interp;
	__u32 reserved;
};

struct mt_env { /* see image_read() */
	__u64 at;
	__u64 end;
	__u32 flags;
	__u32 inside; /* the last chunk ended within a string */
};

/*
 * A record is built in place: the path grows backwards from the end of its
 * zone, the value stands behind it, and the head is copied right before the
 * path when that is complete. The slack keeps every access in bounds for the
 * verifier, which looks at offset and length separately.
 */
struct mt_scratch {
	struct mt_bpf_event head;
	struct mt_walk walk;
	struct mt_auxv auxv_scan;
	struct mt_env env_scan;
	__u64 auxv[MT_AUXV_WORDS];
	char env[MT_ENV_CHUNK];
	char out[sizeof(struct mt_bpf_event) + MT_BPF_PATH_MAX + MT_BPF_VALUE_MAX];
	char slack[MT_BPF_PATH_MAX];
};

/* One for the tracepoints, which cannot interrupt each other, and one for the fentry program. */
enum { MT_SCRATCH_TRACE, MT_SCRATCH_MMAP, MT_SCRATCHES };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MT_SCRATCHES);
	__type(key, __u32);
	__type(value, struct mt_scratch);
} mt_scratch SEC(".maps");

static __always_inline struct mt_scratch *scratch_get(__u32 which)
{
	return bpf_map_lookup_elem(&mt_scratch, &which);
}

static __always_inline struct task_struct *current_task(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

static __always_inline void lost_count(void)
{
	__sync_fetch_and_add(&mt_lost, 1);
}

struct mt_ids {
	__s32 nr; /* in the session's namespace */
	__s32 ns_nr;
};

struct mt_upid {
	__s32 nr;
	__u64 ns;
};

static __always_inline bool upid_read(struct pid *pid, __u32 level, struct mt_upid *upid)
{
	const char *numbers = (const char *)__builtin_preserve_access_index(&pid->numbers);

	return bpf_probe_read_kernel(upid, sizeof(*upid), numbers + level * sizeof(*upid)) == 0;
}

/* The numbers of a task. False: the session's namespace does not see it. */
static __always_inline bool ids_read(struct task_struct *task, struct mt_ids *ids)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	struct mt_upid upid;

	if (!pid || level < mt_session_level || !upid_read(pid, mt_session_level, &upid) ||
	    upid.ns != mt_session_ns)
		return false;
	ids->nr = upid.nr;
	if (level != mt_session_level && !upid_read(pid, level, &upid))
		return false;
	ids->ns_nr = upid.nr;
	return true;
}

/* Numbers of a task and of its process, when that process is followed. */
static __always_inline bool followed_read(struct task_struct *task, struct mt_ids *process,
					  struct mt_ids *thread)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	if (!ids_read(leader, process) || !bpf_map_lookup_elem(&mt_followed, &process->nr))
		return false;
	if (task == leader)
		*thread = *process;
	else if (!ids_read(task, thread))
		return false;
	return true;
}

#endif
