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

struct mt_auxv {
	__u32 flags;
	__u32 compat;
	__u32 interp;
};

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
	struct mt_auxv *auxv = context;
	__u64 first, second;

	if (!scratch || index >= MT_AUXV_WORDS / 2)
		return 1;
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
	struct mt_auxv auxv = { .flags = MT_BPF_AUXV };

	if (!have_bpf_loop())
		return 0; /* no loop that is cheap to verify: not known */
	if (size > sizeof(scratch->auxv))
		size = sizeof(scratch->auxv);
	if (bpf_probe_read_kernel(scratch->auxv, size, saved) || scratch->auxv[0] == 0)
		return 0;
	if (scratch->auxv[0] >> 32) {
		auxv.compat = 1;
		auxv.flags |= MT_BPF_COMPAT;
	}
	bpf_loop(MT_AUXV_WORDS / 2, auxv_step, &auxv, 0);
	return auxv.interp ? auxv.flags : auxv.flags | MT_BPF_NO_INTERP;
}

#define MT_ENV_STRINGS 4096

struct mt_env {
	__u64 at;
	__u64 end;
	__u32 flags;
	__u32 inside; /* the last chunk ended within a string */
};

/* Takes the string of LD_PRELOAD in scratch->env; ld.so uses the last of several. */
static __always_inline void env_take(struct mt_env *env, struct mt_scratch *scratch)
{
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
	struct mt_env *env = context;
	struct mt_scratch *scratch = scratch_get(MT_SCRATCH_TRACE);
	long len;

	(void)index;
	if (!scratch)
		return 1;
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
			env_take(env, scratch);
			if (!(env->flags & MT_BPF_PRELOAD))
				return 1;
		}
	}
	/* A full chunk may have been cut: all but its NUL belongs to the string. */
	env->inside = len == sizeof(scratch->env);
	env->at += env->inside ? len - 1 : len;
	return 0;
}

/* Flags of the environment; the value of LD_PRELOAD goes into the scratch memory. */
static __always_inline __u32 env_flags(struct mm_struct *mm)
{
	struct mt_env env = {
		.at = BPF_CORE_READ(mm, env_start),
		.end = BPF_CORE_READ(mm, env_end),
	};

	if (!have_bpf_loop())
		return 0; /* no loop that is long enough: not known */
	bpf_loop(MT_ENV_STRINGS, env_step, &env, 0);
	return env.flags;
}

#endif
