// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel_load.h"

#include "bpf/process.skel.h"
#include "common/bpf_event.h"
#include "sidecar/kernel_btf.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_BYTES_DEFAULT (1u << 20) /* 5,000 short processes, none drained */

const char *mt_kbpf_tier_name(enum mt_kbpf_tier tier)
{
	static const char *const names[MT_KBPF_TIERS] = { "tp_btf", "raw_tp", "tracepoint" };

	return names[tier];
}

/* What libbpf said first when a load failed; it prints by way of one function for all threads. */
static char first_warning[160];

__attribute__((format(printf, 2, 0))) static int warning_keep(enum libbpf_print_level level,
							      const char *format, va_list args)
{
	size_t len = strlen(first_warning);

	if (level != LIBBPF_WARN || len > 0)
		return 0;
	vsnprintf(first_warning, sizeof(first_warning), format, args);
	len = strcspn(first_warning, "\n");
	first_warning[len] = '\0';
	return 0;
}

/* Cheap, and before libbpf tries things one by one. */
static int may_load(char *why, size_t why_size)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, (uint32_t)getpagesize(), NULL);

	if (fd == -EPERM || fd == -EACCES) {
		snprintf(why, why_size, "needs CAP_BPF and CAP_PERFMON (or root)");
		return fd;
	}
	if (fd < 0) {
		snprintf(why, why_size, "no BPF ring buffer (Linux 5.8 or later is needed): %s",
			 strerror(-fd));
		return fd;
	}
	close(fd);
	if (access(MT_KBTF_PATH, R_OK)) {
		int err = -errno;

		snprintf(why, why_size, "%s cannot be read: %s", MT_KBTF_PATH, strerror(-err));
		return err;
	}
	return 0;
}

static void programs_choose(struct mt_process *skeleton, const struct mt_kbpf_options *options,
			    bool fentry)
{
	struct bpf_program *wanted[8], *program;
	size_t count = 0, i;

	wanted[count++] = skeleton->progs.session_find;
	switch (options->tier) {
	case MT_KBPF_TP_BTF:
		wanted[count++] = skeleton->progs.btf_fork;
		wanted[count++] = skeleton->progs.btf_exit;
		wanted[count++] = options->vma_iter ? skeleton->progs.btf_exec_maps
						    : skeleton->progs.btf_exec;
		break;
	case MT_KBPF_RAW_TP:
		wanted[count++] = skeleton->progs.raw_fork;
		wanted[count++] = skeleton->progs.raw_exec;
		wanted[count++] = skeleton->progs.raw_exit;
		break;
	default:
		wanted[count++] = skeleton->progs.tp_fork;
		wanted[count++] = skeleton->progs.tp_exec;
		wanted[count++] = skeleton->progs.tp_exit;
		break;
	}
	if (fentry)
		wanted[count++] = skeleton->progs.fentry_mmap;
	bpf_object__for_each_program(program, skeleton->obj)
	{
		bool load = false;

		for (i = 0; i < count; i++)
			load |= wanted[i] == program;
		bpf_program__set_autoload(program, load);
	}
}

/* What the loader has to look up in the kernel's BTF. */
enum { ID_FORK, ID_EXEC, ID_EXIT, ID_MMAP, ID_VMA_NEW, ID_VMA_NEXT, ID_VMA_DESTROY, IDS };

static const struct mt_kbtf_id ids_wanted[IDS] = {
	[ID_FORK] = { "btf_trace_sched_process_fork", BTF_KIND_TYPEDEF, 0 },
	[ID_EXEC] = { "btf_trace_sched_process_exec", BTF_KIND_TYPEDEF, 0 },
	[ID_EXIT] = { "btf_trace_sched_process_exit", BTF_KIND_TYPEDEF, 0 },
	[ID_MMAP] = { "perf_event_mmap", BTF_KIND_FUNC, 0 },
	[ID_VMA_NEW] = { "bpf_iter_task_vma_new", BTF_KIND_FUNC, 0 },
	[ID_VMA_NEXT] = { "bpf_iter_task_vma_next", BTF_KIND_FUNC, 0 },
	[ID_VMA_DESTROY] = { "bpf_iter_task_vma_destroy", BTF_KIND_FUNC, 0 },
};

/* Of the load that runs: libbpf's handlers of sections get no pointer of ours. */
static struct mt_kbtf_id ids[IDS];

static uint32_t id_of_section(const char *section)
{
	static const char *const names[] = { "fork", "exec", "exit", "mmap" };
	size_t len = strlen(section), i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len >= 4 && strcmp(section + len - 4, names[i]) == 0)
			return ids[ID_FORK + i].id;
	return 0;
}

/* Puts the kfuncs where the calls with their numbers are. */
static int calls_resolve(struct bpf_program *program)
{
	const size_t count = bpf_program__insn_cnt(program);
	const size_t bytes = count * sizeof(struct bpf_insn);
	struct bpf_insn *insns = malloc(bytes);
	bool changed = false;
	int err = 0;
	size_t i;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(program), bytes);
	for (i = 0; i < count && !err; i++) {
		const uint32_t which = (uint32_t)insns[i].imm - MT_BPF_CALL_VMA_NEW;

		if (insns[i].code != (BPF_JMP | BPF_CALL) || insns[i].src_reg != 0 || which > 2)
			continue;
		insns[i].src_reg = BPF_PSEUDO_KFUNC_CALL;
		insns[i].imm = (int32_t)ids[ID_VMA_NEW + which].id;
		changed = true;
		if (insns[i].imm == 0)
			err = -ENOTSUP;
	}
	if (changed && !err)
		err = bpf_program__set_insns(program, insns, count);
	free(insns);
	return err;
}

/* Makes a program of type tracing out of it, as libbpf does for tp_btf and fentry. */
static int tracing_prepare(struct bpf_program *program, struct bpf_prog_load_opts *opts, long type)
{
	opts->attach_btf_id = id_of_section(bpf_program__section_name(program));
	if (opts->attach_btf_id == 0)
		return -ENOTSUP;
	opts->expected_attach_type = (enum bpf_attach_type)type;
	/* Had it this type before, libbpf would read all of the kernel's BTF. */
	bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
	return calls_resolve(program);
}

static int sections_register(void)
{
	static int registered;
	LIBBPF_OPTS(libbpf_prog_handler_opts, tp_btf, .cookie = BPF_TRACE_RAW_TP,
		    .prog_prepare_load_fn = tracing_prepare);
	LIBBPF_OPTS(libbpf_prog_handler_opts, fentry, .cookie = BPF_TRACE_FENTRY,
		    .prog_prepare_load_fn = tracing_prepare);
	int id;

	if (registered)
		return 0;
	id = libbpf_register_prog_handler("mt_tp_btf+", BPF_PROG_TYPE_RAW_TRACEPOINT, 0, &tp_btf);
	if (id < 0)
		return id;
	id = libbpf_register_prog_handler("mt_fentry+", BPF_PROG_TYPE_RAW_TRACEPOINT, 0, &fentry);
	if (id < 0)
		return id;
	registered = 1;
	return 0;
}

/* Lets the kernel side find out which PID namespace we are in. */
static int session_find(struct mt_process *skeleton)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err = bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.session_find), &run);

	if (err)
		return err;
	return run.retval == 1 ? 0 : -ESRCH;
}

/* Without libbpf's bpf_program__attach(), which does not know our sections. */
static int program_attach(struct mt_kload *load, const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);
	int fd;

	if (strncmp(section, "tp/", 3) == 0) {
		struct bpf_link *link = bpf_program__attach(program);

		if (!link)
			return -errno;
		load->links[load->link_count++] = link;
		return 0;
	}
	fd = bpf_raw_tracepoint_open(strncmp(section, "raw_tp/", 7) == 0 ? section + 7 : NULL,
				     bpf_program__fd(program));
	if (fd < 0)
		return fd;
	load->attached[load->attached_count++] = fd;
	return 0;
}

static int programs_attach(struct mt_kload *load)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, load->skeleton->obj)
	{
		const bool fentry = program == load->skeleton->progs.fentry_mmap;
		int err;

		if (bpf_program__fd(program) < 0 || program == load->skeleton->progs.session_find)
			continue;
		err = program_attach(load, program);
		/* It is one of several ways to see mappings; the caller looks at load->fentry. */
		if (err && !fentry)
			return err;
		if (!err && fentry)
			load->fentry = true;
	}
	return 0;
}

/* Whether the kernel takes a program at the entry of a function: not all are built for it. */
static bool fentry_loads(uint32_t function_id)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY,
		    .attach_btf_id = function_id);
	int fd;

	if (function_id == 0)
		return false;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "mt_try", "Dual MIT/GPL", insns, 2, &opts);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* The size of the ring is a power of two of pages. */
static uint32_t ring_bytes(size_t wanted)
{
	uint32_t bytes = (uint32_t)getpagesize();

	while (bytes < wanted && bytes < 1u << 30)
		bytes *= 2;
	return bytes;
}

static int maps_set(struct mt_process *skeleton, const struct mt_kbpf_options *options)
{
	const size_t bytes = options->ring_bytes ? options->ring_bytes : RING_BYTES_DEFAULT;
	int err = bpf_map__set_max_entries(skeleton->maps.mt_ring, ring_bytes(bytes));

	while ((getpagesize() >> skeleton->rodata->mt_page_shift) > 1)
		skeleton->rodata->mt_page_shift++;
	if (err || options->tier == MT_KBPF_TP_BTF)
		return err;
	/* Linux 5.6 to 6.0 complains in its log of such programs with other tables. */
	return bpf_map__set_map_flags(skeleton->maps.mt_followed, 0);
}

static int skeleton_load(struct mt_kload *load, const struct mt_kbpf_options *options, int types_fd)
{
	char types_path[64];
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = types_path);
	int err = sections_register();

	if (err)
		return err;
	snprintf(types_path, sizeof(types_path), "/proc/self/fd/%d", types_fd);
	load->skeleton = mt_process__open_opts(&opts);
	if (!load->skeleton)
		return -errno;
	memcpy(ids, ids_wanted, sizeof(ids));
	err = mt_kbtf_slim(bpf_object__btf(load->skeleton->obj), types_fd, ids, IDS);
	if (err)
		return err;
	programs_choose(load->skeleton, options, options->fentry && fentry_loads(ids[ID_MMAP].id));
	err = maps_set(load->skeleton, options);
	if (!err)
		err = mt_process__load(load->skeleton);
	/* The counter of lost records is read there; libbpf maps it where the kernel lets it. */
	if (!err && !load->skeleton->bss) {
		snprintf(first_warning, sizeof(first_warning), "global data cannot be mapped");
		err = -ENOTSUP;
	}
	if (!err)
		err = session_find(load->skeleton);
	if (!err)
		err = programs_attach(load);
	return err;
}

int mt_kload_init(struct mt_kload *load, const struct mt_kbpf_options *options, char *why,
		  size_t why_size)
{
	libbpf_print_fn_t print_saved;
	int err = may_load(why, why_size), types_fd;

	if (err)
		return err;
	/* libbpf takes the types by a path. */
	if (access("/proc/self/fd", X_OK) < 0) {
		err = -errno;
		snprintf(why, why_size, "/proc/self/fd: %s", strerror(-err));
		return err;
	}
	types_fd = memfd_create("memtrack-types", MFD_CLOEXEC);
	if (types_fd < 0) {
		err = -errno;
		snprintf(why, why_size, "memfd_create: %s", strerror(-err));
		return err;
	}
	first_warning[0] = '\0';
	print_saved = libbpf_set_print(warning_keep);
	err = skeleton_load(load, options, types_fd);
	libbpf_set_print(print_saved);
	close(types_fd);
	if (err)
		snprintf(why, why_size, "%s (%s)", first_warning[0] ? first_warning : "eBPF",
			 strerror(-err));
	return err;
}

void mt_kload_fini(struct mt_kload *load)
{
	size_t i;

	for (i = 0; i < load->attached_count; i++)
		close(load->attached[i]);
	for (i = 0; i < load->link_count; i++)
		bpf_link__destroy(load->links[i]);
	mt_process__destroy(load->skeleton);
}
