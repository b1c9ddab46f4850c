/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The path of an open file as /proc/PID/maps shows it to the current process:
 * from the root of that process, over mounts, without " (deleted)". bpf_d_path()
 * is not allowed in these programs, and it would not know the paths of stacked
 * file systems; so the dentries are walked here. Included by process.bpf.c alone.
 */
#ifndef MT_BPF_PATH_H
#define MT_BPF_PATH_H

#include "bpf/session.h"

/* The kernel's FMODE_BACKING: bit 24 from Linux 6.14 on, 25 before; each meant other things too. */
#define MT_FMODE_BACKING (3u << 24)

/* Where bpf_loop() does not exist (before Linux 5.17) deeper paths are left out. */
#define MT_WALK_STEPS	    4096
#define MT_WALK_STEPS_SHORT 40

static __always_inline bool have_bpf_loop(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop);
}

/* Puts "/name" before what is there. False: no room. */
static __always_inline bool walk_prepend(struct mt_scratch *scratch, struct dentry *dentry)
{
	struct mt_walk *walk = &scratch->walk;
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	__u32 len = BPF_CORE_READ(dentry, d_name.len);
	__u32 start = walk->start;

	if (len > 255 || start < len + 1)
		return false;
	start -= len;
	if (bpf_probe_read_kernel(&scratch->out[sizeof(scratch->head) + (start & 4095)], len & 255,
				  name))
		return false;
	start--;
	scratch->out[sizeof(scratch->head) + (start & 4095)] = '/';
	walk->start = start;
	return true;
}

/* One step up; the form that bpf_loop() wants: 1 ends the walk. */
static __noinline long walk_step(__u32 index, void *context)
{
	struct mt_scratch *scratch = scratch_get(*(__u32 *)context);
	struct dentry *dentry, *parent;
	struct vfsmount *mnt;
	struct mt_walk *walk;
	struct mount *mount;

	(void)index;
	if (!scratch)
		return 1;
	walk = &scratch->walk;
	dentry = walk->dentry;
	mount = walk->mount;
	mnt = __builtin_preserve_access_index(&mount->mnt);
	if (dentry == walk->root_dentry && mnt == walk->root_mnt) {
		walk->done = 1;
		return 1;
	}
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);

		if (above == mount) {
			/* Outside of the process's root: the path is as far as it goes. */
			walk->done = 1;
			return 1;
		}
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		walk->mount = above;
		return 0;
	}
	if (!walk_prepend(scratch, dentry))
		return 1;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == parent) {
		/* A file without a place in a tree: memfd, System V shared memory. */
		walk->done = 1;
		return 1;
	}
	walk->dentry = parent;
	return 0;
}

struct mt_file_at {
	struct vfsmount *mnt;
	struct dentry *dentry;
	struct inode *inode;
};

/*
 * The path and inode that the user sees: on overlayfs those of the overlay,
 * which stand behind the file that is mapped. The flag alone does not prove
 * that something is there; a dentry and a mount of the same file system do.
 */
static __always_inline void file_at(struct file *file, struct mt_file_at *at)
{
	struct dentry *dentry;
	struct vfsmount *mnt;

	at->mnt = BPF_CORE_READ(file, f_path.mnt);
	at->dentry = BPF_CORE_READ(file, f_path.dentry);
	at->inode = BPF_CORE_READ(file, f_inode);
	if (bpf_core_field_exists(struct backing_file, user_path) &&
	    BPF_CORE_READ(file, f_mode) & MT_FMODE_BACKING) {
		struct backing_file *backing = (struct backing_file *)file;
		struct super_block *sb;

		mnt = BPF_CORE_READ(backing, user_path.mnt);
		dentry = BPF_CORE_READ(backing, user_path.dentry);
		sb = BPF_CORE_READ(dentry, d_sb);
		if (!sb || sb != BPF_CORE_READ(mnt, mnt_sb))
			return;
		at->mnt = mnt;
		at->dentry = dentry;
		at->inode = BPF_CORE_READ(dentry, d_inode);
	}
}

/*
 * Writes the path of a struct file, as the current task sees it, into scratch
 * `which`, and its length into the head there. Global functions are verified by
 * themselves and once, not at each call: that is most of the time that a load
 * takes. Their arguments can be no kernel pointers but numbers.
 */
int path_write(__u64 file_address, __u32 which)
{
	struct mt_scratch *scratch = scratch_get(which);
	struct task_struct *task = current_task();
	struct file *file = (struct file *)file_address;
	struct mt_walk *walk;
	struct mt_file_at at;
	struct inode *inode;
	int i;

	if (!scratch)
		return 0;
	walk = &scratch->walk;
	file_at(file, &at);
	inode = at.inode;
	scratch->head.ino = BPF_CORE_READ(inode, i_ino);
	scratch->head.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	walk->dentry = at.dentry;
	walk->mount = (struct mount *)((char *)at.mnt - bpf_core_field_offset(struct mount, mnt));
	walk->start = MT_BPF_PATH_MAX;
	walk->done = 0;
	walk->root_dentry = BPF_CORE_READ(task, fs, root.dentry);
	walk->root_mnt = BPF_CORE_READ(task, fs, root.mnt);
	if (have_bpf_loop()) {
		bpf_loop(MT_WALK_STEPS, walk_step, &which, 0);
	} else {
		for (i = 0; i < MT_WALK_STEPS_SHORT; i++)
			if (walk_step(i, &which))
				break;
	}
	if (!walk->done || walk->start > MT_BPF_PATH_MAX) {
		scratch->head.flags |= MT_BPF_PATH_TOO_LONG;
		scratch->head.path_len = 0;
		return 0;
	}
	scratch->head.path_len = MT_BPF_PATH_MAX - walk->start;
	return 0;
}

/* Sends the head, the path and the value in the scratch memory. */
int scratch_send(__u32 which)
{
	struct mt_scratch *scratch = scratch_get(which);
	__u32 path_len, value_len, start;

	if (!scratch)
		return 0;
	path_len = scratch->head.path_len;
	value_len = scratch->head.value_len;
	start = MT_BPF_PATH_MAX - path_len;
	if (path_len > MT_BPF_PATH_MAX || value_len > MT_BPF_VALUE_MAX)
		return 0;
	/* A path of no bytes starts one past the mask; it is moved to 0 with nothing to show. */
	if (path_len == 0)
		start = value_len = scratch->head.value_len = 0;
	start &= MT_BPF_PATH_MAX - 1;
	if (bpf_probe_read_kernel(&scratch->out[start], sizeof(scratch->head), &scratch->head) ||
	    bpf_ringbuf_output(&mt_ring, &scratch->out[start],
			       sizeof(scratch->head) + path_len + value_len, 0))
		lost_count();
	return 0;
}

#endif
