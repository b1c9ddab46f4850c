/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The few kernel structs that the programs read, with the few members that
 * they need. Every access is relocated at load time against the running
 * kernel's BTF, so order and size here mean nothing; names and types do.
 */
#ifndef MT_BPF_KERNEL_TYPES_H
#define MT_BPF_KERNEL_TYPES_H

#include <linux/types.h>
#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};

typedef struct {
	int counter;
} atomic_t;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
};

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	struct inode *f_inode;
	struct path f_path;
};

/* What stands behind a VMA of a stacked file system (Linux 6.8 and later). */
struct backing_file {
	struct file file;
	struct path user_path;
};

struct mm_struct {
	unsigned long env_start;
	unsigned long env_end;
	unsigned long saved_auxv[2];
	struct file *exe_file;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct fs_struct {
	struct path root;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
};

struct task_struct {
	int pid;
	int exit_code;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct signal_struct *signal;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct list_head children;
	struct list_head sibling;
	struct pid *thread_pid;
};

struct trace_event_raw_sched_process_fork {
	int child_pid;
};

#pragma clang attribute pop

/* An open-coded iterator: opaque, not relocated. */
struct bpf_iter_task_vma {
	__u64 opaque[1];
} __attribute__((aligned(8)));

#endif
