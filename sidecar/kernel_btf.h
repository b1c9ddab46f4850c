/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The few types of the kernel that the eBPF programs need, cut out of its BTF.
 *
 * libbpf reads all of the kernel's 100,000 types and more to relocate a dozen
 * structs, which takes longer than all the rest of a start. This walks over
 * them once and copies what is named in the object's own BTF; libbpf is given
 * the copy as btf_custom_path. In passing it finds the numbers of functions and
 * tracepoints that libbpf would look up too.
 *
 * Owner and threads: one owner, not shared.
 */
#ifndef MT_SIDECAR_KERNEL_BTF_H
#define MT_SIDECAR_KERNEL_BTF_H

#include <stddef.h>
#include <stdint.h>

struct btf;

#define MT_KBTF_PATH "/sys/kernel/btf/vmlinux"

/* A function or typedef that is looked for by name. */
struct mt_kbtf_id {
	const char *name;
	uint32_t kind; /* BTF_KIND_FUNC or BTF_KIND_TYPEDEF */
	uint32_t id;   /* 0: the kernel has none */
};

/*
 * Writes to `fd` what the kernel has of the structs and enums in `wanted`, and
 * fills the ids. Returns 0 or a negative errno; the kernel's data is checked.
 */
int mt_kbtf_slim(const struct btf *wanted, int fd, struct mt_kbtf_id *ids, size_t id_count);

#endif
