// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sidecar/kernel_perf.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * 6,500 records of 80 bytes, and all that perf_event_mlock_kb allows each CPU by default; where
 * that is taken, they are smaller. Many CPUs share the load and the memory. The kernel tells of the
 * start and end of each thread too, 56 bytes, wanted or not: there is room for 10,000 threads at
 * once, while a busy machine lets us wait.
 */
#define RING_BYTES     (512u * 1024)
#define RING_BYTES_MIN (32u * 1024)
#define RING_CPUS      8

/* From how many CPUs on inheriting costs forks more than the records of others cost us. */
#define INHERIT_CPUS 4

/* The threads that a running process may have when it is followed. */
#define THREADS_MAX 4096

/* PERF_FORMAT_LOST, which older headers do not have. */
#define FORMAT_LOST (1u << 4)

/* The largest record: 64 KiB by its size field, a path of 4,096 bytes and some in fact. */
#define RECORD_LIKELY_MAX 8192u

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	uint64_t lost_told;
};

struct mt_kperf {
	struct ring *rings; /* one a CPU */
	size_t ring_count;
	int *fds; /* events of further threads; they write into the rings of the first */
	size_t fd_count;
	unsigned int threads;
	bool global; /* events of all processes */
	size_t page_size;
	bool counts_lost; /* the kernel counts lost records (Linux 6.0 and later) */
	char *record;	  /* one that wraps around is put together here */
};

#define RECORD_MAX 65536u /* perf_event_header.size has 16 bits */

static int event_open(pid_t tid, int cpu, bool tasks, bool counts_lost)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.read_format = counts_lost ? FORMAT_LOST : 0,
		.inherit = tid >= 0,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = tasks,
		.watermark = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.wakeup_watermark = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int mt_kperf_probe(void)
{
	int fd = event_open(0, -1, true, false);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static size_t ring_bytes(size_t cpus, size_t page_size)
{
	size_t bytes = RING_BYTES;

	for (; cpus > RING_CPUS && bytes > RING_BYTES_MIN && bytes > page_size; cpus /= 2)
		bytes /= 2;
	return bytes;
}

static int ring_open(struct mt_kperf *perf, struct ring *ring, pid_t pid, int cpu, bool tasks)
{
	size_t bytes = ring_bytes(perf->ring_count, perf->page_size);
	void *page = MAP_FAILED;

	ring->fd = event_open(pid, cpu, tasks, perf->counts_lost);
	if (ring->fd == -EINVAL && perf->counts_lost) {
		perf->counts_lost = false;
		ring->fd = event_open(pid, cpu, tasks, false);
	}
	if (ring->fd < 0)
		return ring->fd;
	/* What may be locked is a sum over the user's rings: take less before giving up. */
	for (; page == MAP_FAILED && bytes >= perf->page_size; bytes /= 2)
		page = mmap(NULL, perf->page_size + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			    ring->fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	ring->page = page;
	return 0;
}

/* Further threads of a process that runs already. A thread that has gone needs no event. */
static int thread_open(struct mt_kperf *perf, pid_t tid, bool tasks)
{
	size_t i;

	for (i = 0; i < perf->ring_count; i++) {
		int fd;

		if (perf->rings[i].fd < 0)
			continue;
		fd = event_open(tid, (int)i, tasks, perf->counts_lost);
		if (fd == -ESRCH)
			return 0;
		if (fd < 0)
			return fd;
		perf->fds[perf->fd_count++] = fd;
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, perf->rings[i].fd))
			return -errno;
	}
	return 0;
}

static int threads_open(struct mt_kperf *perf, pid_t pid, bool tasks)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0; /* no /proc: the first thread is what can be followed */
	while (!err && perf->threads < THREADS_MAX && (entry = readdir(dir))) {
		int tid = atoi(entry->d_name);
		int *grown;

		if (tid <= 0 || tid == pid)
			continue;
		perf->threads++;
		if (perf->global)
			continue;
		grown = realloc(perf->fds,
				(perf->fd_count + perf->ring_count) * sizeof(*perf->fds));
		if (!grown) {
			err = -ENOMEM;
			break;
		}
		perf->fds = grown;
		err = thread_open(perf, tid, tasks);
	}
	closedir(dir);
	return err;
}

/* One event a CPU that is there; of all processes with pid -1. */
static int rings_open(struct mt_kperf *perf, pid_t pid, bool tasks)
{
	size_t i, opened = 0;

	for (i = 0; i < perf->ring_count; i++) {
		int err = ring_open(perf, &perf->rings[i], pid, (int)i, tasks);

		if (err == -ENODEV || err == -ENXIO || (err == -EINVAL && opened > 0))
			continue; /* a CPU that is not there now */
		if (err)
			return err;
		opened++;
	}
	return opened ? 0 : -ENODEV;
}

static void rings_close(struct mt_kperf *perf)
{
	size_t i;

	for (i = 0; i < perf->ring_count; i++) {
		struct ring *ring = &perf->rings[i];

		if (ring->page)
			munmap(ring->page, perf->page_size + ring->page->data_size);
		if (ring->fd >= 0)
			close(ring->fd);
		ring->page = NULL;
		ring->fd = -1;
	}
}

int mt_kperf_open(pid_t pid, bool tasks, enum mt_kernel_perf_scope scope,
		  struct mt_kperf **ret_perf)
{
	struct mt_kperf *perf = calloc(1, sizeof(*perf));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t i;
	int err = -ENOMEM;

	if (!perf)
		return -ENOMEM;
	perf->threads = 1;
	perf->counts_lost = true;
	perf->page_size = (size_t)sysconf(_SC_PAGESIZE);
	perf->record = malloc(RECORD_MAX);
	perf->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*perf->rings));
	if (!perf->record || !perf->rings)
		goto out;
	perf->ring_count = cpus > 0 ? (size_t)cpus : 1;
	for (i = 0; i < perf->ring_count; i++)
		perf->rings[i].fd = -1;
	perf->global = scope == MT_KERNEL_PERF_ALL ||
		       (scope == MT_KERNEL_PERF_AUTO && perf->ring_count > INHERIT_CPUS);
	err = perf->global ? rings_open(perf, -1, tasks) : -EACCES;
	if (err) {
		rings_close(perf);
		perf->global = false;
		err = rings_open(perf, pid, tasks);
	}
	if (!err)
		err = threads_open(perf, pid, tasks);
	if (err)
		goto out;
	*ret_perf = perf;
	perf = NULL;
out:
	mt_kperf_close(perf);
	return err;
}

bool mt_kperf_is_global(const struct mt_kperf *perf)
{
	return perf->global;
}

unsigned int mt_kperf_threads(const struct mt_kperf *perf)
{
	return perf->threads;
}

void mt_kperf_close(struct mt_kperf *perf)
{
	size_t i;

	if (!perf)
		return;
	for (i = 0; i < perf->fd_count; i++)
		close(perf->fds[i]);
	rings_close(perf);
	free(perf->fds);
	free(perf->rings);
	free(perf->record);
	free(perf);
}

int mt_kperf_poll_add(const struct mt_kperf *perf, int epoll_fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	size_t i;

	for (i = 0; i < perf->ring_count; i++)
		if (perf->rings[i].fd >= 0 &&
		    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, perf->rings[i].fd, &event))
			return -errno;
	return 0;
}

/* The records, as the kernel lays them out for our attr; each ends with a sample id. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
};

struct record_task {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct record_mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

struct record_comm {
	uint32_t pid, tid;
};

struct record_lost {
	uint64_t id, lost;
};

static const char deleted[] = " (deleted)";

/*
 * The kernel marks the path of a file that is gone; the path is wanted without
 * that. A file whose name ends so is told apart by being there.
 */
static uint32_t path_without_mark(const char *path, uint32_t len)
{
	char name[4097];
	const uint32_t mark = sizeof(deleted) - 1;

	if (len <= mark || len >= sizeof(name) || memcmp(path + len - mark, deleted, mark) != 0)
		return len;
	memcpy(name, path, len);
	name[len] = '\0';
	return access(name, F_OK) == 0 ? len : len - mark;
}

static void mmap2_push(struct mt_kqueue *queue, struct mt_kev *event, const char *body, size_t size)
{
	const size_t head = sizeof(struct record_mmap2);
	struct record_mmap2 map;
	const char *path = body + head;

	if (size <= head)
		return;
	memcpy(&map, body, head);
	event->path_len = (uint32_t)strnlen(path, size - head);
	/* What has no file is named without a slash, or //anon. */
	if (!(map.prot & PROT_EXEC) || path[0] != '/' || strncmp(path, "//anon", 6) == 0)
		return;
	event->type = MT_KEV_MAPPING;
	event->pid = (int32_t)map.pid;
	event->tid = (int32_t)map.tid;
	event->addr = map.addr;
	event->len = map.len;
	event->file_offset = map.pgoff;
	event->dev = (uint64_t)map.maj << 20 | map.min;
	event->ino = map.ino;
	event->path = path;
	/* "//toolong", "//enomem": the kernel has no path. */
	event->path_len = path[1] == '/' ? 0 : path_without_mark(path, event->path_len);
	mt_kqueue_push(queue, MT_KREC_PERF_MMAP, event);
}

static void task_push(struct mt_kqueue *queue, enum mt_krecord_kind kind, struct mt_kev *event,
		      const char *body, size_t size)
{
	struct record_task task;

	if (size < sizeof(task))
		return;
	memcpy(&task, body, sizeof(task));
	event->pid = (int32_t)task.pid;
	event->tid = (int32_t)task.tid;
	event->parent_pid = (int32_t)task.ppid;
	event->parent_tid = (int32_t)task.ptid;
	event->time_ns = task.time + queue->ahead_ns;
	mt_kqueue_push(queue, kind, event);
}

static void lost_push(struct mt_kqueue *queue, uint64_t lost)
{
	struct mt_kev event = { .type = MT_KEV_LOST };
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	event.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	event.lost = lost > UINT32_MAX ? UINT32_MAX : (uint32_t)lost;
	mt_kqueue_push(queue, MT_KREC_EVENT, &event);
}

/* One whole record; `body` is what follows the header. Records of no use are passed over. */
static void record_push(const struct mt_kperf *perf, struct mt_kqueue *queue, uint32_t type,
			uint32_t misc, const char *body, size_t size)
{
	struct mt_kev event = { 0 };
	struct sample_id id;
	struct record_comm comm;
	struct record_lost lost;

	if (size < sizeof(id))
		return;
	size -= sizeof(id);
	memcpy(&id, body + size, sizeof(id));
	event.time_ns = id.time + queue->ahead_ns;
	switch (type) {
	case PERF_RECORD_FORK:
		task_push(queue, MT_KREC_PERF_FORK, &event, body, size);
		break;
	case PERF_RECORD_EXIT:
		task_push(queue, MT_KREC_PERF_EXIT, &event, body, size);
		break;
	case PERF_RECORD_MMAP2:
		mmap2_push(queue, &event, body, size);
		break;
	case PERF_RECORD_COMM:
		if (!(misc & PERF_RECORD_MISC_COMM_EXEC) || size < sizeof(comm))
			break;
		memcpy(&comm, body, sizeof(comm));
		event.type = MT_KEV_EXEC;
		event.pid = (int32_t)comm.pid;
		event.tid = (int32_t)comm.tid;
		mt_kqueue_push(queue, MT_KREC_PERF_EXEC, &event);
		break;
	case PERF_RECORD_LOST:
		if (perf->counts_lost || size < sizeof(lost))
			break;
		memcpy(&lost, body, sizeof(lost));
		lost_push(queue, lost.lost);
		break;
	default:
		break;
	}
}

static void ring_copy(char *to, const char *data, uint64_t mask, uint64_t at, size_t len)
{
	size_t first = (size_t)(mask + 1 - (at & mask));

	if (first > len)
		first = len;
	memcpy(to, data + (at & mask), first);
	memcpy(to + first, data, len - first);
}

/* A record that says so comes only with the next one that fits, which may never be. */
static void ring_lost_read(struct ring *ring, struct mt_kqueue *queue)
{
	uint64_t values[2]; /* the counter's value, how many were lost */

	if (read(ring->fd, values, sizeof(values)) != sizeof(values) ||
	    values[1] <= ring->lost_told)
		return;
	lost_push(queue, values[1] - ring->lost_told);
	ring->lost_told = values[1];
}

static void ring_read(struct mt_kperf *perf, struct ring *ring, struct mt_kqueue *queue)
{
	struct perf_event_mmap_page *page = ring->page;
	const char *data = (const char *)page + perf->page_size;
	const uint64_t size = page->data_size, mask = size - 1;
	/* Pairs with the kernel's store of data_head after the records. */
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const uint64_t start = page->data_tail;
	uint64_t tail = start;

	while (tail != head) {
		struct perf_event_header header;

		if (head - tail < sizeof(header) || head - tail > size) {
			lost_push(queue, 1);
			tail = head;
			break;
		}
		ring_copy((char *)&header, data, mask, tail, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail) {
			lost_push(queue, 1);
			tail = head;
			break;
		}
		ring_copy(perf->record, data, mask, tail + sizeof(header),
			  header.size - sizeof(header));
		record_push(perf, queue, header.type, header.misc, perf->record,
			    header.size - sizeof(header));
		tail += header.size;
	}
	/* Pairs with the kernel's load of data_tail before it writes over them. */
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	/* Only where there was no room for a record can one be lost. */
	if (perf->counts_lost &&
	    __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) - start + RECORD_LIKELY_MAX > size)
		ring_lost_read(ring, queue);
}

void mt_kperf_read(struct mt_kperf *perf, struct mt_kqueue *queue)
{
	size_t i;

	for (i = 0; i < perf->ring_count; i++)
		if (perf->rings[i].page)
			ring_read(perf, &perf->rings[i], queue);
}
