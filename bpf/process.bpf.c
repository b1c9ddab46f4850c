// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Fork, exec, exit and executable mappings of the followed processes.
 *
 * Each event has up to three entries over one body: BTF tracepoint, raw
 * tracepoint, classic tracepoint. The loader picks the entries that it loads.
 * (The sections mt_tp_btf and mt_fentry are the usual ones but for who finds the
 * attach point: sidecar/kernel_bpf.c, without a look at all of the kernel's BTF.)
 * The bodies read with bpf_probe_read_kernel() only, so they are the same for
 * all; what a tracepoint passes is used to find the tasks, no more.
 *
 * The BPF programs are under two licences, because the kernel asks for the GPL:
 * SPDX-License-Identifier of the loaded programs: Dual MIT/GPL.
 */
#include "bpf/session.h"
#include "bpf/path.h"
#include "bpf/image.h"

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MT_VM_EXEC	     0x4u
#define MT_SIGNAL_GROUP_EXIT 0x4u

/* See MT_BPF_CALL_VMA_NEW. */
static int (*vma_new)(struct bpf_iter_task_vma *it, struct task_struct *task,
		      __u64 addr) = (void *)MT_BPF_CALL_VMA_NEW;
static struct vm_area_struct *(*vma_next)(struct bpf_iter_task_vma *it) = (void *)
	MT_BPF_CALL_VMA_NEXT;
static void (*vma_destroy)(struct bpf_iter_task_vma *it) = (void *)MT_BPF_CALL_VMA_DESTROY;

static __always_inline int on_fork(struct task_struct *parent, struct task_struct *child)
{
	struct mt_ids process, thread, born;
	struct mt_bpf_event *event;
	__u32 one = 1;

	/* A thread: nothing to follow, its process is. */
	if (BPF_CORE_READ(child, group_leader) != child)
		return 0;
	if (!followed_read(parent, &process, &thread) || !ids_read(child, &born))
		return 0;
	if (bpf_map_update_elem(&mt_followed, &born.nr, &one, BPF_ANY))
		lost_count();
	event = bpf_ringbuf_reserve(&mt_ring, sizeof(*event), 0);
	if (!event) {
		lost_count();
		return 0;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_ns();
	event->type = MT_BPF_FORK;
	if (BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm))
		event->flags = MT_BPF_SHARED_VM;
	event->pid = event->tid = born.nr;
	event->ns_pid = event->ns_tid = born.ns_nr;
	event->parent_pid = process.nr;
	event->parent_tid = thread.nr;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

/* Fills the head of an Exec and sends it; the mappings after it use the head again. */
static __always_inline void exec_send(struct mt_scratch *scratch, const struct mt_ids *process,
				      const struct mt_ids *thread, __u32 flags)
{
	struct task_struct *task = current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	__builtin_memset(&scratch->head, 0, sizeof(scratch->head));
	scratch->head.time_ns = bpf_ktime_get_ns();
	scratch->head.type = MT_BPF_EXEC;
	scratch->head.pid = process->nr;
	scratch->head.tid = thread->nr;
	scratch->head.ns_pid = process->ns_nr;
	scratch->head.ns_tid = thread->ns_nr;
	scratch->head.flags = flags;
	image_read((__u64)mm);
	path_write((__u64)BPF_CORE_READ(mm, exe_file), MT_SCRATCH_TRACE);
	scratch_send(MT_SCRATCH_TRACE);
}

static __always_inline int on_exec(struct task_struct *task)
{
	struct mt_scratch *scratch = scratch_get(MT_SCRATCH_TRACE);
	struct mt_ids process, thread;

	if (scratch && followed_read(task, &process, &thread))
		exec_send(scratch, &process, &thread, 0);
	return 0;
}

static __always_inline void mapping_send(struct vm_area_struct *vma, struct mt_scratch *scratch,
					 __u32 which)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);

	if (!file || !(BPF_CORE_READ(vma, vm_flags) & MT_VM_EXEC))
		return;
	scratch->head.type = MT_BPF_MAPPING;
	scratch->head.flags = 0;
	scratch->head.value_len = 0;
	scratch->head.addr = BPF_CORE_READ(vma, vm_start);
	scratch->head.len = BPF_CORE_READ(vma, vm_end) - scratch->head.addr;
	scratch->head.file_offset = BPF_CORE_READ(vma, vm_pgoff) << mt_page_shift;
	path_write((__u64)file, which);
	scratch_send(which);
}

static __always_inline int on_exit(struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct mt_ids process, thread;
	struct mt_bpf_event *event;
	__u32 flags = 0;
	int status;

	if (!followed_read(task, &process, &thread))
		return 0;
	/*
	 * The count of live threads has fallen already. Two threads that end at the same
	 * time can both see 0 here; the process ends with the one that removes it.
	 */
	if (BPF_CORE_READ(signal, live.counter) == 0 &&
	    bpf_map_delete_elem(&mt_followed, &process.nr) == 0)
		flags = MT_BPF_LAST_THREAD;
	event = bpf_ringbuf_reserve(&mt_ring, sizeof(*event), 0);
	if (!event) {
		lost_count();
		return 0;
	}
	/* The status that wait(2) will give: of the group when it was ended as one. */
	status = BPF_CORE_READ(task, group_leader, exit_code);
	if (BPF_CORE_READ(signal, flags) & MT_SIGNAL_GROUP_EXIT)
		status = BPF_CORE_READ(signal, group_exit_code);
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_ns();
	event->type = MT_BPF_EXIT;
	event->flags = flags;
	event->pid = process.nr;
	event->tid = thread.nr;
	event->ns_pid = process.ns_nr;
	event->ns_tid = thread.ns_nr;
	event->exit_status = status;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

/* Run once by the sidecar itself: where it is. */
SEC("raw_tp")
int session_find(void *args)
{
	struct task_struct *task = current_task();
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	struct mt_upid upid;

	(void)args;
	if (!upid_read(pid, level, &upid))
		return 0;
	mt_session_level = level;
	mt_session_ns = upid.ns;
	return 1;
}

SEC("mt_tp_btf/sched_process_fork")
int BPF_PROG(btf_fork, struct task_struct *parent, struct task_struct *child)
{
	return on_fork(parent, child);
}

SEC("mt_tp_btf/sched_process_exec")
int BPF_PROG(btf_exec, struct task_struct *task)
{
	return on_exec(task);
}

/* Exec, and what the kernel has mapped for it: the program and its interpreter. */
SEC("mt_tp_btf/sched_process_exec")
int BPF_PROG(btf_exec_maps, struct task_struct *task)
{
	struct mt_scratch *scratch = scratch_get(MT_SCRATCH_TRACE);
	struct mt_ids process, thread;
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	int err;

	if (!scratch || !followed_read(task, &process, &thread))
		return 0;
	/* Fails when somebody else holds the lock of the memory map. */
	err = vma_new(&it, task, 0);
	exec_send(scratch, &process, &thread, err ? 0 : MT_BPF_MAPS);
	while ((vma = vma_next(&it)))
		mapping_send(vma, scratch, MT_SCRATCH_TRACE);
	vma_destroy(&it);
	return 0;
}

SEC("mt_tp_btf/sched_process_exit")
int BPF_PROG(btf_exit, struct task_struct *task)
{
	return on_exit(task);
}

SEC("raw_tp/sched_process_fork")
int raw_fork(struct bpf_raw_tracepoint_args *args)
{
	return on_fork((struct task_struct *)args->args[0], (struct task_struct *)args->args[1]);
}

SEC("raw_tp/sched_process_exec")
int raw_exec(struct bpf_raw_tracepoint_args *args)
{
	return on_exec((struct task_struct *)args->args[0]);
}

SEC("raw_tp/sched_process_exit")
int raw_exit(struct bpf_raw_tracepoint_args *args)
{
	return on_exit((struct task_struct *)args->args[0]);
}

#define MT_SIBLINGS_BACK 16

/*
 * A classic tracepoint gives no task but a number. A new child is the last in
 * its parent's list, unless another thread has just added one there. A thread
 * is in no such list.
 */
static __always_inline struct task_struct *child_find(struct task_struct *parent, int pid)
{
	struct list_head *head = __builtin_preserve_access_index(&parent->children);
	struct list_head *at = BPF_CORE_READ(head, prev);
	int i;

	for (i = 0; i < MT_SIBLINGS_BACK && at && at != head; i++) {
		struct task_struct *child =
			(struct task_struct *)((char *)at -
					       bpf_core_field_offset(struct task_struct, sibling));

		if (BPF_CORE_READ(child, pid) == pid)
			return child;
		at = BPF_CORE_READ(at, prev);
	}
	return NULL;
}

SEC("tp/sched/sched_process_fork")
int tp_fork(struct trace_event_raw_sched_process_fork *args)
{
	struct task_struct *parent = current_task();
	int pid = BPF_CORE_READ(args, child_pid);
	struct task_struct *child = child_find(parent, pid);

	if (!child) /* CLONE_PARENT makes a sibling */
		child = child_find(BPF_CORE_READ(parent, real_parent), pid);
	return child ? on_fork(parent, child) : 0;
}

SEC("tp/sched/sched_process_exec")
int tp_exec(void *args)
{
	(void)args;
	return on_exec(current_task());
}

SEC("tp/sched/sched_process_exit")
int tp_exit(void *args)
{
	(void)args;
	return on_exit(current_task());
}

/*
 * Called for every mapping that is made and every change of protection. During
 * exec the VMA iterator sees them all at its end; the environment's end is set
 * when the image is complete.
 */
SEC("mt_fentry/perf_event_mmap")
int BPF_PROG(fentry_mmap, struct vm_area_struct *vma)
{
	struct task_struct *task = current_task();
	struct mt_scratch *scratch = scratch_get(MT_SCRATCH_MMAP);
	struct mt_ids process, thread;

	if (!scratch || !(BPF_CORE_READ(vma, vm_flags) & MT_VM_EXEC) ||
	    BPF_CORE_READ(task, mm, env_end) == 0 || !followed_read(task, &process, &thread))
		return 0;
	__builtin_memset(&scratch->head, 0, sizeof(scratch->head));
	scratch->head.time_ns = bpf_ktime_get_ns();
	scratch->head.pid = process.nr;
	scratch->head.tid = thread.nr;
	scratch->head.ns_pid = process.ns_nr;
	scratch->head.ns_tid = thread.ns_nr;
	mapping_send(vma, scratch, MT_SCRATCH_MMAP);
	return 0;
}
