// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel_bpf.h"

#include "bpf/process.skel.h"
#include "common/bpf_event.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES_DEFAULT (1u << 20) /* 5,000 short processes, none drained */
#define BTF_PATH	   "/sys/kernel/btf/vmlinux"

/* Where entries of the table must be allocated before use: see mt_kbpf_open(). */
#define FOLLOWED_PREALLOCATED 16384

struct mt_kbpf {
	struct mt_process *skeleton;
	struct ring_buffer *ring;
	char *preload_name;
	uint64_t lost_told;
	struct mt_kqueue *queue; /* of the read that runs */
};

const char *mt_kbpf_tier_name(enum mt_kbpf_tier tier)
{
	static const char *const names[MT_KBPF_TIERS] = { "tp_btf", "raw_tp", "tracepoint" };

	return names[tier];
}

/* What libbpf said first when a load failed; it prints by way of one function for all threads. */
static char first_warning[160];

static int warning_keep(enum libbpf_print_level level, const char *format, va_list args)
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
	if (access(BTF_PATH, R_OK)) {
		int err = -errno;

		snprintf(why, why_size, "%s cannot be read: %s", BTF_PATH, strerror(-err));
		return err;
	}
	return 0;
}

static void programs_choose(struct mt_process *skeleton, const struct mt_kbpf_options *options)
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
	if (options->fentry)
		wanted[count++] = skeleton->progs.fentry_mmap;
	bpf_object__for_each_program(program, skeleton->obj)
	{
		bool load = false;

		for (i = 0; i < count; i++)
			load |= wanted[i] == program;
		bpf_program__set_autoload(program, load);
	}
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

static int ring_record(void *context, void *data, size_t size);

static int skeleton_load(struct mt_kbpf *bpf, const struct mt_kbpf_options *options)
{
	struct mt_process *skeleton = mt_process__open();
	size_t ring_bytes = options->ring_bytes ? options->ring_bytes : RING_BYTES_DEFAULT;
	size_t power = (size_t)getpagesize();
	int err;

	if (!skeleton)
		return -errno;
	bpf->skeleton = skeleton;
	while (power < ring_bytes && power < (1u << 30))
		power *= 2;
	programs_choose(skeleton, options);
	while ((getpagesize() >> skeleton->rodata->mt_page_shift) > 1)
		skeleton->rodata->mt_page_shift++;
	err = bpf_map__set_max_entries(skeleton->maps.mt_ring, (uint32_t)power);
	if (!err && options->tier != MT_KBPF_TP_BTF) {
		/* Linux 5.6 to 6.0 complains in its log of such programs with other tables. */
		err = bpf_map__set_map_flags(skeleton->maps.mt_followed, 0);
		if (!err)
			err = bpf_map__set_max_entries(skeleton->maps.mt_followed,
						       FOLLOWED_PREALLOCATED);
	}
	if (!err)
		err = mt_process__load(skeleton);
	if (!err)
		err = session_find(skeleton);
	if (!err)
		err = mt_process__attach(skeleton);
	if (err)
		return err;
	bpf->ring = ring_buffer__new(bpf_map__fd(skeleton->maps.mt_ring), ring_record, bpf, NULL);
	return bpf->ring ? 0 : -errno;
}

int mt_kbpf_open(const struct mt_kbpf_options *options, struct mt_kbpf **ret_bpf, char *why,
		 size_t why_size)
{
	libbpf_print_fn_t print_saved;
	struct mt_kbpf *bpf;
	int err = may_load(why, why_size);

	if (err)
		return err;
	bpf = calloc(1, sizeof(*bpf));
	if (!bpf ||
	    !(bpf->preload_name = strdup(options->preload_name ? options->preload_name : ""))) {
		free(bpf);
		snprintf(why, why_size, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	first_warning[0] = '\0';
	print_saved = libbpf_set_print(warning_keep);
	err = skeleton_load(bpf, options);
	libbpf_set_print(print_saved);
	if (err) {
		snprintf(why, why_size, "%s (%s)", first_warning[0] ? first_warning : "eBPF",
			 strerror(-err));
		mt_kbpf_close(bpf);
		return err;
	}
	*ret_bpf = bpf;
	return 0;
}

void mt_kbpf_close(struct mt_kbpf *bpf)
{
	if (!bpf)
		return;
	ring_buffer__free(bpf->ring);
	mt_process__destroy(bpf->skeleton);
	free(bpf->preload_name);
	free(bpf);
}

int mt_kbpf_follow(struct mt_kbpf *bpf, pid_t pid)
{
	const int32_t key = pid;
	const uint32_t one = 1;

	return bpf_map_update_elem(bpf_map__fd(bpf->skeleton->maps.mt_followed), &key, &one,
				   BPF_ANY);
}

int mt_kbpf_fd(const struct mt_kbpf *bpf)
{
	return ring_buffer__epoll_fd(bpf->ring);
}

static uint32_t exec_flags(const struct mt_kbpf *bpf, uint32_t flags, const char *value, size_t len)
{
	const bool compat_sidecar = sizeof(void *) == 4;
	const size_t name_len = strlen(bpf->preload_name);
	uint32_t result = 0;
	bool named;

	if (flags & MT_BPF_AUXV) {
		result |= MT_EXEC_KNOWN;
		if (flags & MT_BPF_SECURE)
			result |= MT_EXEC_SECURE;
		if (flags & MT_BPF_NO_INTERP)
			result |= MT_EXEC_NO_INTERP;
		if (!(flags & MT_BPF_COMPAT) == compat_sidecar)
			result |= MT_EXEC_FOREIGN;
	}
	named = name_len > 0 && memmem(value, len, bpf->preload_name, name_len);
	if (!(flags & MT_BPF_ENV))
		result |= MT_EXEC_ENV_UNKNOWN;
	else if (!named && name_len > 0)
		result |= MT_EXEC_NO_PRELOAD;
	if (!(flags & MT_BPF_MAPS))
		result |= MT_EXEC_MAPS_UNKNOWN;
	return result;
}

static void exit_push(struct mt_kqueue *queue, struct mt_kev *event, uint32_t flags)
{
	event->type = MT_KEV_THREAD_EXIT;
	mt_kqueue_push(queue, MT_KREC_EVENT, event);
	if (!(flags & MT_BPF_LAST_THREAD))
		return;
	event->type = MT_KEV_EXIT;
	mt_kqueue_push(queue, MT_KREC_EVENT, event);
}

/* One record of the ring. What is not of the size that it says is passed over. */
static int ring_record(void *context, void *data, size_t size)
{
	struct mt_kbpf *bpf = context;
	struct mt_bpf_event record;
	struct mt_kev event = { 0 };
	const char *path = (const char *)data + sizeof(record);

	if (size < sizeof(record))
		return 0;
	memcpy(&record, data, sizeof(record));
	size -= sizeof(record);
	if (record.path_len > size || record.value_len > size - record.path_len)
		return 0;
	event.time_ns = record.time_ns;
	event.pid = record.pid;
	event.tid = record.tid;
	event.parent_pid = record.parent_pid;
	event.parent_tid = record.parent_tid;
	event.ns_pid = record.ns_pid;
	event.ns_tid = record.ns_tid;
	event.exit_status = record.exit_status;
	event.addr = record.addr;
	event.len = record.len;
	event.file_offset = record.file_offset;
	event.dev = record.dev;
	event.ino = record.ino;
	event.path = path;
	event.path_len = record.path_len;
	switch (record.type) {
	case MT_BPF_FORK:
		event.type = MT_KEV_FORK;
		event.exec_flags = record.flags & MT_BPF_SHARED_VM ? MT_EXEC_VFORK : 0;
		break;
	case MT_BPF_EXEC:
		event.type = MT_KEV_EXEC;
		event.exec_flags =
			exec_flags(bpf, record.flags, path + record.path_len, record.value_len);
		break;
	case MT_BPF_EXIT:
		exit_push(bpf->queue, &event, record.flags);
		return 0;
	case MT_BPF_MAPPING:
		event.type = MT_KEV_MAPPING;
		break;
	default:
		return 0;
	}
	mt_kqueue_push(bpf->queue, MT_KREC_EVENT, &event);
	return 0;
}

void mt_kbpf_read(struct mt_kbpf *bpf, struct mt_kqueue *queue)
{
	struct mt_kev event = { .type = MT_KEV_LOST };
	struct timespec now;
	uint64_t lost;

	bpf->queue = queue;
	ring_buffer__consume(bpf->ring);
	lost = __atomic_load_n(&bpf->skeleton->bss->mt_lost, __ATOMIC_RELAXED);
	if (lost == bpf->lost_told)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	event.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	event.lost = (uint32_t)(lost - bpf->lost_told);
	bpf->lost_told = lost;
	mt_kqueue_push(queue, MT_KREC_EVENT, &event);
}
