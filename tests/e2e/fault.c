/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A library that lets one call fail, preloaded into the sidecar or memtrack by a test:
 *
 *   MT_FAULT_IN      the program's name; in others it does nothing
 *   MT_FAULT_CALL    which function (its name in fault_calls.h), or "memory": any that fails
 *                    with ENOMEM
 *   MT_FAULT_NTH     its n-th call fails, counted from 1; 0: none
 *   MT_FAULT_SPAN    so many calls fail from there on (1)
 *   MT_FAULT_MS      instead: all calls fail from there on for so many milliseconds
 *   MT_FAULT_SITE    only calls from there are counted for MT_FAULT_NTH (fault_site.h); not for
 *                    "memory"
 *   MT_FAULT_FILE    close: only calls for this file are counted, and fail
 *   MT_FAULT_COUNTS  a file that gets the number of calls of each function when the program exits
 *   MT_FAULT_SITES   a file that gets the number of calls of each function from each site
 *
 * A failure is what the function's manual names: its result and errno. Calls of children of the
 * program that were not exec'ed count as its own; only the program itself writes the counts.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/fault_calls.h"
#include "tests/e2e/fault_site.h"

#define EXPORT __attribute__((visibility("default")))

/* glibc's own names: nothing needs to be looked up to allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

enum call {
#define NAME(name, error) CALL_##name,
	CALLS(NAME)
#undef NAME
		CALL_COUNT
};

static const struct {
	const char *name;
	int error;
} calls[] = {
#define ROW(name, error) { #name, error },
	CALLS(ROW)
#undef ROW
};

static atomic_ulong counts[CALL_COUNT], memory_count;
static int chosen = -1;
static bool memory_chosen;
static unsigned long nth, span = 1, span_ms;
static atomic_ullong since_ms; /* the first failure; 0: none yet */
static bool active;
static pid_t self;
static const char *counts_path, *sites_path;
static const char *chosen_file;
static uint64_t chosen_site; /* 0: all */

static const char *name_of(int call)
{
	return calls[call].name;
}

static void write_counts(void)
{
	FILE *file;

	if (!active || getpid() != self)
		return;
	active = false;
	if (sites_path)
		site_write(sites_path, name_of);
	file = counts_path ? fopen(counts_path, "we") : NULL;
	for (int i = 0; file && i < CALL_COUNT; i++)
		if (counts[i])
			fprintf(file, "%s %lu\n", calls[i].name, (unsigned long)counts[i]);
	if (file) {
		fprintf(file, "memory %lu\n", (unsigned long)memory_count);
		fclose(file);
	}
}

__attribute__((constructor)) static void start(void)
{
	const char *in = getenv("MT_FAULT_IN"), *call = getenv("MT_FAULT_CALL");
	const char *number = getenv("MT_FAULT_NTH");

	if (!in || strcmp(in, program_invocation_short_name) != 0)
		return;
	for (int i = 0; call && i < CALL_COUNT; i++)
		if (!strcmp(call, calls[i].name))
			chosen = i;
	memory_chosen = call && !strcmp(call, "memory");
	nth = number ? strtoul(number, NULL, 10) : 0;
	number = getenv("MT_FAULT_SPAN");
	span = number ? strtoul(number, NULL, 10) : 1;
	number = getenv("MT_FAULT_MS");
	span_ms = number ? strtoul(number, NULL, 10) : 0;
	self = getpid();
	counts_path = getenv("MT_FAULT_COUNTS");
	sites_path = getenv("MT_FAULT_SITES");
	if (counts_path || sites_path)
		atexit(write_counts);
	chosen_file = getenv("MT_FAULT_FILE");
	number = getenv("MT_FAULT_SITE");
	chosen_site = number ? strtoull(number, NULL, 16) : 0;
	if (sites_path || chosen_site)
		site_init();
	active = true;
}

/* Is it still the time in which all calls fail? The first that asks begins it. */
static bool in_time(void)
{
	unsigned long long none = 0, now;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (unsigned long long)ts.tv_sec * 1000 + (unsigned long long)ts.tv_nsec / 1000000 + 1;
	atomic_compare_exchange_strong(&since_ms, &none, now);
	return now - since_ms < span_ms;
}

/* Which call from the chosen site this is, or 0. */
static unsigned long number_at_site(enum call call)
{
	static atomic_ulong calls_there;
	uint64_t site;

	if (!sites_path && (int)call != chosen)
		return 0;
	site = site_find();
	if (sites_path)
		site_count((int)call, site);
	return site == chosen_site ? atomic_fetch_add(&calls_there, 1) + 1 : 0;
}

/* Counts the call; true when it is one that fails. */
static bool fails(enum call call)
{
	unsigned long number, memory = 0;

	if (!active)
		return false;
	number = atomic_fetch_add(&counts[call], 1) + 1;
	if (calls[call].error == ENOMEM)
		memory = atomic_fetch_add(&memory_count, 1) + 1;
	if (sites_path || chosen_site)
		number = number_at_site(call);
	if (memory_chosen)
		number = memory; /* 0: not one of them */
	else if ((int)call != chosen)
		number = 0;
	if (nth == 0 || number < nth || (span_ms ? !in_time() : number - nth >= span))
		return false;
	errno = calls[call].error;
	return true;
}

static void *next_of(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#define NEXT(name)                            \
	static __typeof__(name) *next_##name; \
	if (!next_##name)                     \
	next_##name = next_of(#name)

/* A function of fixed parameters: fails with `bad`, else goes on to the next one of its name. */
#define PASS(type, name, parameters, arguments, bad)                             \
	EXPORT type name parameters                                              \
	{                                                                        \
		NEXT(name);                                                      \
		return fails(CALL_##name) ? (type)(bad) : next_##name arguments; \
	}

EXPORT void *malloc(size_t size)
{
	return fails(CALL_malloc) ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	return fails(CALL_calloc) ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *block, size_t size)
{
	return fails(CALL_realloc) ? NULL : __libc_realloc(block, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return fails(CALL_aligned_alloc) ? NULL : __libc_memalign(alignment, size);
}

EXPORT int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list list;

	NEXT(open);
	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		va_end(list);
	}
	return fails(CALL_open) ? -1 : next_open(path, flags, mode);
}

EXPORT int fcntl(int fd, int command, ...)
{
	va_list list;
	long argument;

	NEXT(fcntl);
	va_start(list, command);
	argument = va_arg(list, long);
	va_end(list);
	return fails(CALL_fcntl) ? -1 : next_fcntl(fd, command, argument);
}

EXPORT int prctl(int option, ...)
{
	static int (*next)(int, ...);
	unsigned long arguments[4];
	va_list list;

	if (!next)
		next = next_of("prctl");
	va_start(list, option);
	for (int i = 0; i < 4; i++)
		arguments[i] = va_arg(list, unsigned long);
	va_end(list);
	return fails(CALL_prctl)
		       ? -1
		       : next(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

EXPORT long syscall(long number, ...)
{
	long arguments[6];
	va_list list;

	NEXT(syscall);
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	return fails(CALL_syscall) ? -1
				   : next_syscall(number, arguments[0], arguments[1], arguments[2],
						  arguments[3], arguments[4], arguments[5]);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
			  void *argument)
{
	NEXT(pthread_create);
	return fails(CALL_pthread_create) ? EAGAIN
					  : next_pthread_create(thread, attr, function, argument);
}

/* Output that fails is remembered by its stream, as glibc does it. */
#define STREAM_ERROR 0x20

static bool fails_on(enum call call, FILE *stream)
{
	if (!fails(call))
		return false;
	stream->_flags |= STREAM_ERROR;
	return true;
}

#define OUTPUT(type, name, parameters, arguments, stream, bad)                              \
	EXPORT type name parameters                                                         \
	{                                                                                   \
		NEXT(name);                                                                 \
		return fails_on(CALL_##name, stream) ? (type)(bad) : next_##name arguments; \
	}

OUTPUT(int, fflush, (FILE * stream), (stream), stream ? stream : stdout, EOF)
OUTPUT(size_t, fwrite, (const void *bytes, size_t size, size_t count, FILE *stream),
       (bytes, size, count, stream), stream, 0)
OUTPUT(int, fputs, (const char *text, FILE *stream), (text, stream), stream, EOF)
OUTPUT(int, fputc, (int c, FILE *stream), (c, stream), stream, EOF)
#undef putc
OUTPUT(int, putc, (int c, FILE *stream), (c, stream), stream, EOF)
#undef putchar
OUTPUT(int, putchar, (int c), (c), stdout, EOF)
OUTPUT(int, puts, (const char *text), (text), stdout, EOF)
OUTPUT(int, vfprintf, (FILE * stream, const char *format, va_list list), (stream, format, list),
       stream, -1)

EXPORT int fprintf(FILE *stream, const char *format, ...)
{
	static int (*next)(FILE *, const char *, va_list);
	va_list list;
	int result;

	if (fails_on(CALL_fprintf, stream))
		return -1;
	if (!next)
		next = next_of("vfprintf");
	va_start(list, format);
	result = next(stream, format, list);
	va_end(list);
	return result;
}

EXPORT int printf(const char *format, ...)
{
	static int (*next)(FILE *, const char *, va_list);
	va_list list;
	int result;

	if (fails_on(CALL_printf, stdout))
		return -1;
	if (!next)
		next = next_of("vfprintf");
	va_start(list, format);
	result = next(stdout, format, list);
	va_end(list);
	return result;
}

EXPORT int asprintf(char **text, const char *format, ...)
{
	va_list list;
	int result;

	if (fails(CALL_asprintf))
		return -1;
	va_start(list, format);
	result = vasprintf(text, format, list);
	va_end(list);
	return result;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *argument;

	NEXT(ioctl);
	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	return fails(CALL_ioctl) ? -1 : next_ioctl(fd, request, argument);
}

/* A stream is closed all the same. */
EXPORT int fclose(FILE *stream)
{
	int result;

	NEXT(fclose);
	result = next_fclose(stream);
	return fails(CALL_fclose) ? EOF : result;
}

EXPORT char *fgets(char *line, int size, FILE *stream)
{
	NEXT(fgets);
	return fails_on(CALL_fgets, stream) ? NULL : next_fgets(line, size, stream);
}

PASS(void *, reallocarray, (void *block, size_t count, size_t size), (block, count, size), NULL)
PASS(ssize_t, __getdelim, (char **line, size_t *size, int delimiter, FILE *stream),
     (line, size, delimiter, stream), -1)
PASS(int, munmap, (void *at, size_t len), (at, len), -1)
PASS(int, madvise, (void *at, size_t len, int advice), (at, len, advice), -1)
PASS(struct dirent *, readdir, (DIR * dir), (dir), NULL)
PASS(int, flock, (int fd, int how), (fd, how), -1)
PASS(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
PASS(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group), -1)
PASS(int, fsync, (int fd), (fd), -1)
PASS(int, link, (const char *from, const char *to), (from, to), -1)
PASS(int, rename, (const char *from, const char *to), (from, to), -1)
PASS(int, renameat2,
     (int from_folder, const char *from, int to_folder, const char *to, unsigned flags),
     (from_folder, from, to_folder, to, flags), -1)
PASS(int, lstat, (const char *path, struct stat *st), (path, st), -1)
PASS(int, access, (const char *path, int how), (path, how), -1)
PASS(ssize_t, fgetxattr, (int fd, const char *name, void *value, size_t size),
     (fd, name, value, size), -1)
PASS(int, dup, (int fd), (fd), -1)
PASS(int, mkostemp, (char *pattern, int flags), (pattern, flags), -1)
PASS(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options),
     -1)
PASS(int, kill, (pid_t pid, int number), (pid, number), -1)
PASS(int, sigqueue, (pid_t pid, int number, const union sigval value), (pid, number, value), -1)
PASS(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *timeout),
     (set, info, timeout), -1)
PASS(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), -1)
PASS(pid_t, setsid, (void), (), -1)
PASS(int, setgroups, (size_t count, const gid_t *groups), (count, groups), -1)
PASS(int, setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved), -1)
PASS(int, setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved), -1)
PASS(struct passwd *, getpwuid, (uid_t uid), (uid), NULL)
PASS(int, getgrouplist, (const char *user, gid_t group, gid_t *groups, int *count),
     (user, group, groups, count), -1)
PASS(long, sysconf, (int name), (name), -1)
PASS(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t *set), (pid, size, set), -1)
PASS(int, sem_wait, (sem_t * sem), (sem), -1)
PASS(int, sem_trywait, (sem_t * sem), (sem), -1)
PASS(int, sem_clockwait, (sem_t * sem, clockid_t clock, const struct timespec *until),
     (sem, clock, until), -1)
PASS(void *, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t offset),
     (at, len, prot, flags, fd, offset), MAP_FAILED)
PASS(int, mprotect, (void *at, size_t len, int prot), (at, len, prot), -1)
PASS(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
PASS(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
PASS(DIR *, opendir, (const char *path), (path), NULL)
PASS(ssize_t, read, (int fd, void *bytes, size_t len), (fd, bytes, len), -1)
PASS(ssize_t, pread, (int fd, void *bytes, size_t len, off_t at), (fd, bytes, len, at), -1)
PASS(ssize_t, write, (int fd, const void *bytes, size_t len), (fd, bytes, len), -1)
PASS(ssize_t, pwrite, (int fd, const void *bytes, size_t len, off_t at), (fd, bytes, len, at), -1)
PASS(int, ftruncate, (int fd, off_t len), (fd, len), -1)
PASS(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence), -1)
PASS(int, fstat, (int fd, struct stat *st), (fd, st), -1)
PASS(int, stat, (const char *path, struct stat *st), (path, st), -1)
PASS(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
PASS(int, socketpair, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds), -1)
PASS(int, bind, (int fd, const struct sockaddr *address, socklen_t len), (fd, address, len), -1)
PASS(int, listen, (int fd, int backlog), (fd, backlog), -1)
PASS(int, accept4, (int fd, struct sockaddr *address, socklen_t *len, int flags),
     (fd, address, len, flags), -1)
PASS(int, connect, (int fd, const struct sockaddr *address, socklen_t len), (fd, address, len), -1)
PASS(ssize_t, recv, (int fd, void *bytes, size_t len, int flags), (fd, bytes, len, flags), -1)
PASS(ssize_t, send, (int fd, const void *bytes, size_t len, int flags), (fd, bytes, len, flags), -1)
PASS(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), -1)
PASS(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
     (fd, level, name, value, len), -1)
PASS(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
     (fd, level, name, value, len), -1)
PASS(pid_t, fork, (void), (), -1)
PASS(int, execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp),
     -1)
PASS(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options), -1)
PASS(int, sem_init, (sem_t * sem, int shared, unsigned value), (sem, shared, value), -1)
PASS(int, epoll_create1, (int flags), (flags), -1)
PASS(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event), (epfd, op, fd, event),
     -1)
PASS(int, epoll_wait, (int epfd, struct epoll_event *events, int max, int timeout),
     (epfd, events, max, timeout), -1)
PASS(int, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout), -1)
PASS(int, eventfd, (unsigned value, int flags), (value, flags), -1)
PASS(int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags), -1)
PASS(int, sigaction, (int number, const struct sigaction *action, struct sigaction *old),
     (number, action, old), -1)
PASS(ssize_t, getrandom, (void *bytes, size_t len, unsigned flags), (bytes, len, flags), -1)
PASS(char *, mkdtemp, (char *pattern), (pattern), NULL)
PASS(int, symlink, (const char *to, const char *path), (to, path), -1)
PASS(int, lchown, (const char *path, uid_t uid, gid_t gid), (path, uid, gid), -1)
PASS(int, unlink, (const char *path), (path), -1)
PASS(int, rmdir, (const char *path), (path), -1)
PASS(char *, getcwd, (char *path, size_t len), (path, len), NULL)
PASS(ssize_t, readlink, (const char *path, char *buffer, size_t len), (path, buffer, len), -1)
PASS(char *, realpath, (const char *path, char *resolved), (path, resolved), NULL)
PASS(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *limit), (what, limit), -1)
PASS(int, getrlimit, (__rlimit_resource_t what, struct rlimit *limit), (what, limit), -1)
PASS(int, dup3, (int from, int to, int flags), (from, to, flags), -1)

static bool is_chosen_file(int fd)
{
	char link[64], path[4096];
	ssize_t len;

	if (!active || !chosen_file)
		return !chosen_file;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlinkat(AT_FDCWD, link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = 0;
	return strcmp(path, chosen_file) == 0;
}

/* A close that fails has closed all the same. */
EXPORT int close(int fd)
{
	bool counted = is_chosen_file(fd);
	int result;

	NEXT(close);
	result = next_close(fd);
	return counted && fails(CALL_close) ? -1 : result;
}
