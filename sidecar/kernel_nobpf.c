// SPDX-License-Identifier: MIT OR Apache-2.0
/* The eBPF sources where the project was built without them. */
#include "sidecar/kernel_bpf.h"

#include <errno.h>
#include <stdio.h>

const char *mt_kbpf_tier_name(enum mt_kbpf_tier tier)
{
	static const char *const names[MT_KBPF_TIERS] = { "tp_btf", "raw_tp", "tracepoint" };

	return names[tier];
}

int mt_kbpf_open(const struct mt_kbpf_options *options, struct mt_kbpf **ret_bpf, char *why,
		 size_t why_size)
{
	(void)options;
	(void)ret_bpf;
	snprintf(why, why_size, "built without eBPF");
	return -ENOTSUP;
}

bool mt_kbpf_has_fentry(const struct mt_kbpf *bpf)
{
	(void)bpf;
	return false;
}

void mt_kbpf_close(struct mt_kbpf *bpf)
{
	(void)bpf;
}

int mt_kbpf_follow(struct mt_kbpf *bpf, pid_t pid)
{
	(void)bpf;
	(void)pid;
	return -ENOTSUP;
}

int mt_kbpf_fd(const struct mt_kbpf *bpf)
{
	(void)bpf;
	return -1;
}

void mt_kbpf_read(struct mt_kbpf *bpf, struct mt_kqueue *queue)
{
	(void)bpf;
	(void)queue;
}
