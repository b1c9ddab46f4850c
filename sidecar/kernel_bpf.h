/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The eBPF sources: loading, attaching, and the ring. Built without eBPF, it
 * says so and nothing works.
 *
 * Owner and threads: one owner, not shared.
 */
#ifndef MT_SIDECAR_KERNEL_BPF_H
#define MT_SIDECAR_KERNEL_BPF_H

#include "sidecar/kernel_queue.h"

struct mt_kbpf;

enum mt_kbpf_tier { MT_KBPF_TP_BTF, MT_KBPF_RAW_TP, MT_KBPF_TRACEPOINT, MT_KBPF_TIERS };

struct mt_kbpf_options {
	enum mt_kbpf_tier tier;
	bool vma_iter;	   /* needs TP_BTF */
	bool fentry;	   /* later mappings, where it loads; see mt_kbpf_has_fentry() */
	size_t ring_bytes; /* 0: default */
	const char *preload_name;
};

const char *mt_kbpf_tier_name(enum mt_kbpf_tier tier);

/* Loads and attaches what is asked for. On failure `why` (of why_size bytes) says why. */
int mt_kbpf_open(const struct mt_kbpf_options *options, struct mt_kbpf **ret_bpf, char *why,
		 size_t why_size);

bool mt_kbpf_has_fentry(const struct mt_kbpf *bpf);

/* NULL is accepted. */
void mt_kbpf_close(struct mt_kbpf *bpf);

int mt_kbpf_follow(struct mt_kbpf *bpf, pid_t pid);

/* The descriptor of the ring, for poll. */
int mt_kbpf_fd(const struct mt_kbpf *bpf);

/* Moves all that is in the ring into the queue, as MT_KREC_EVENT. */
void mt_kbpf_read(struct mt_kbpf *bpf, struct mt_kqueue *queue);

#endif
