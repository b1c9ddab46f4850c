/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a new image is like, read from its memory map at exec: the auxiliary
 * vector that the kernel has just written, and the environment. Included by
 * process.bpf.c alone.
 */
#ifndef MT_BPF_IMAGE_H
#define MT_BPF_IMAGE_H

#include "bpf/path.h"

enum { MT_AT_BASE = 7, MT_AT_SECURE = 23 };

static __always_inline void auxv_pair(struct mt_auxv *auxv, __u64 key, __u64 value)
{
	if (key == MT_AT_BASE && value)
		auxv->interp = 1;
	if (key == MT_AT_SECURE && value)
		auxv->flags |= MT_BPF_SECURE;
}

/* Looks at two words: a pair, or two pairs of a 32-bit image. */
static __noinline long auxv_step(__u32 index, void *context)
{
	struct mt_scratch *scratch = scratch_get(MT_SCRATCH_TRACE);
	struct mt_auxv *auxv;
	__u64 first, second;

	(void)context;
	if (!scratch || index >= MT_AUXV_WORDS / 2)
		return 1;
	auxv = &scratch->auxv_scan;
	first = scratch->auxv[2 * index];
	second = scratch->auxv[2 * index + 1];
	if (auxv->compat) {
		auxv_pair(auxv, (__u32)first, first >> 32);
		auxv_pair(auxv, (__u32)second, second >> 32);
	} else {
		auxv_pair(auxv, first, second);
	}
	return 0;
}

/*
 * The saved vector tells more, and in all kinds of programs alike, than the
 * linux_binprm that only some tracepoints pass on. A 32-bit image has pairs of
 * 32 bits there, so the first key is no small number when read as 64 bits. What
 * stands behind the vector's end is zero.
 */
static __always_inline __u32 auxv_flags(struct mm_struct *mm, struct mt_scratch *scratch)
{
	const void *saved = __builtin_preserve_access_index(&mm->saved_auxv);
	__u32 size = bpf_core_field_size(mm->saved_auxv);
	struct mt_auxv *auxv = &scratch->auxv_scan;

	if (size > sizeof(scratch->auxv))
		size = sizeof(scratch->auxv);
	if (bpf_probe_read_kernel(scratch->auxv, size, saved) || scratch->auxv[0] == 0)
		return 0;
	auxv->interp = 0;
	auxv->compat = scratch->auxv[0] >> 32 != 0;
	auxv->flags = MT_BPF_AUXV | (auxv->compat ? MT_BPF_COMPAT : 0);
	bpf_loop(MT_AUXV_WORDS / 2, auxv_step, NULL, 0);
	return auxv->interp ? auxv->flags : auxv->flags | MT_BPF_NO_INTERP;
}

#define MT_ENV_STRINGS 4096

/* Takes the string of LD_PRELOAD in scratch->env; ld.so uses the last of several. */
static __always_inline void env_take(struct mt_scratch *scratch)
{
	struct mt_env *env = &scratch->env_scan;
	long len = bpf_probe_read_user_str(&scratch->out[sizeof(scratch->head) + MT_BPF_PATH_MAX],
					   MT_BPF_VALUE_MAX,
					   (const void *)(env->at + sizeof("LD_PRELOAD=") - 1));

	if (len <= 0 || len >= MT_BPF_VALUE_MAX) {
		/* Too long to look at: whether we are in it is not known. */
		env->flags &= ~MT_BPF_ENV;
		return;
	}
	scratch->head.value_len = len - 1;
	env->flags |= MT_BPF_PRELOAD;
}

static __noinline long env_step(__u32 index, void *context)
{
	static const char name[] = "LD_PRELOAD=";
	struct mt_scratch *scratch = scratch_get(MT_SCRATCH_TRACE);
	struct mt_env *env;
	long len;

	(void)index;
	(void)context;
	if (!scratch)
		return 1;
	env = &scratch->env_scan;
	if (env->at >= env->end) {
		env->flags |= MT_BPF_ENV;
		return 1;
	}
	len = bpf_probe_read_user_str(scratch->env, sizeof(scratch->env), (const void *)env->at);
	if (len <= 0)
		return 1;
	if (!env->inside && len >= (long)sizeof(name)) {
		int i, differs = 0;

		for (i = 0; i < (int)sizeof(name) - 1; i++)
			differs |= scratch->env[i] ^ name[i];
		if (!differs) {
			env_take(scratch);
			if (!(env->flags & MT_BPF_PRELOAD))
				return 1;
		}
	}
	/* A full chunk may have been cut: all but its NUL belongs to the string. */
	env->inside = len == sizeof(scratch->env);
	env->at += env->inside ? len - 1 : len;
	return 0;
}

/*
 * Puts what the struct mm_struct tells of the image into the head, and the value
 * of LD_PRELOAD into the scratch memory.
 */
int image_read(__u64 mm_address)
{
	struct mt_scratch *scratch = scratch_get(MT_SCRATCH_TRACE);
	struct mm_struct *mm = (struct mm_struct *)mm_address;
	struct mt_env *env;

	/* Without a loop that is cheap to verify nothing is known. */
	if (!scratch || !have_bpf_loop())
		return 0;
	env = &scratch->env_scan;
	env->at = BPF_CORE_READ(mm, env_start);
	env->end = BPF_CORE_READ(mm, env_end);
	env->flags = env->inside = 0;
	bpf_loop(MT_ENV_STRINGS, env_step, NULL, 0);
	scratch->head.flags |= env->flags | auxv_flags(mm, scratch);
	return 0;
}

#endif
