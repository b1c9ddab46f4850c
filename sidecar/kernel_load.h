/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loads and attaches the eBPF programs: which of them, and what libbpf would
 * otherwise read all of the kernel's BTF for. For kernel_bpf.c alone.
 *
 * Owner and threads: one load at a time in the process; libbpf's handlers and
 * its way to print are the process's.
 */
#ifndef MT_SIDECAR_KERNEL_LOAD_H
#define MT_SIDECAR_KERNEL_LOAD_H

#include "sidecar/kernel_bpf.h"

struct bpf_link;
struct mt_process;

#define MT_KLOAD_PROGRAMS 4

struct mt_kload {
	struct mt_process *skeleton;
	int attached[MT_KLOAD_PROGRAMS]; /* descriptors of raw tracepoints and fentry */
	size_t attached_count;
	struct bpf_link *links[MT_KLOAD_PROGRAMS]; /* classic tracepoints */
	size_t link_count;
	bool fentry; /* is attached */
};

/*
 * Fills `load`, which is empty. On failure `why` (of why_size bytes) says why, and what was done is
 * left to mt_kload_fini().
 */
int mt_kload_init(struct mt_kload *load, const struct mt_kbpf_options *options, char *why,
		  size_t why_size);

void mt_kload_fini(struct mt_kload *load);

#endif
