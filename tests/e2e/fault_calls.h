/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every function that is let fail, and with which errno. The lint test holds the list together with
 * what the programs call: what cannot fail, or only by the failure of another one, is listed there.
 */
#ifndef MT_TESTS_E2E_FAULT_CALLS_H
#define MT_TESTS_E2E_FAULT_CALLS_H

#define CALLS(X)                     \
	X(malloc, ENOMEM)            \
	X(calloc, ENOMEM)            \
	X(realloc, ENOMEM)           \
	X(reallocarray, ENOMEM)      \
	X(asprintf, ENOMEM)          \
	X(__getdelim, ENOMEM)        \
	X(aligned_alloc, ENOMEM)     \
	X(mmap, ENOMEM)              \
	X(munmap, ENOMEM)            \
	X(madvise, EAGAIN)           \
	X(mprotect, ENOMEM)          \
	X(memfd_create, EMFILE)      \
	X(open, EMFILE)              \
	X(fopen, EMFILE)             \
	X(fclose, EIO)               \
	X(fflush, ENOSPC)            \
	X(fgets, EIO)                \
	X(fwrite, ENOSPC)            \
	X(fputs, ENOSPC)             \
	X(fputc, ENOSPC)             \
	X(putc, ENOSPC)              \
	X(putchar, ENOSPC)           \
	X(puts, ENOSPC)              \
	X(printf, ENOSPC)            \
	X(fprintf, ENOSPC)           \
	X(vfprintf, ENOSPC)          \
	X(opendir, EMFILE)           \
	X(readdir, EIO)              \
	X(read, EIO)                 \
	X(pread, EIO)                \
	X(write, ENOSPC)             \
	X(pwrite, ENOSPC)            \
	X(ftruncate, EINVAL)         \
	X(lseek, ESPIPE)             \
	X(fcntl, EMFILE)             \
	X(fstat, EIO)                \
	X(stat, EACCES)              \
	X(fchmod, EPERM)             \
	X(flock, ENOLCK)             \
	X(fchown, EPERM)             \
	X(fsync, EIO)                \
	X(link, EPERM)               \
	X(rename, EBUSY)             \
	X(renameat2, EINVAL)         \
	X(lstat, EACCES)             \
	X(access, EACCES)            \
	X(fgetxattr, EIO)            \
	X(ioctl, EINVAL)             \
	X(dup, EMFILE)               \
	X(mkostemp, EACCES)          \
	X(socket, EMFILE)            \
	X(socketpair, EMFILE)        \
	X(bind, EADDRINUSE)          \
	X(listen, EOPNOTSUPP)        \
	X(accept4, EMFILE)           \
	X(connect, ECONNREFUSED)     \
	X(recv, ENOMEM)              \
	X(send, EPIPE)               \
	X(sendmsg, ENOBUFS)          \
	X(getsockopt, ENOBUFS)       \
	X(setsockopt, ENOPROTOOPT)   \
	X(fork, EAGAIN)              \
	X(execvpe, ENOMEM)           \
	X(waitpid, EINTR)            \
	X(waitid, EINTR)             \
	X(kill, EPERM)               \
	X(sigqueue, EAGAIN)          \
	X(sigtimedwait, EINTR)       \
	X(nanosleep, EINTR)          \
	X(setsid, EPERM)             \
	X(setgroups, EPERM)          \
	X(setresgid, EPERM)          \
	X(setresuid, EPERM)          \
	X(getpwuid, EIO)             \
	X(getgrouplist, ENOMEM)      \
	X(sysconf, EINVAL)           \
	X(sched_getaffinity, EINVAL) \
	X(sem_wait, EINTR)           \
	X(sem_trywait, EAGAIN)       \
	X(sem_clockwait, EINTR)      \
	X(pthread_create, EAGAIN)    \
	X(sem_init, ENOSPC)          \
	X(epoll_create1, EMFILE)     \
	X(epoll_ctl, ENOSPC)         \
	X(epoll_wait, EINTR)         \
	X(poll, EINTR)               \
	X(eventfd, EMFILE)           \
	X(signalfd, EMFILE)          \
	X(sigaction, EINVAL)         \
	X(getrandom, EINTR)          \
	X(mkdtemp, EACCES)           \
	X(symlink, EACCES)           \
	X(lchown, EPERM)             \
	X(unlink, EACCES)            \
	X(rmdir, EACCES)             \
	X(getcwd, ENOENT)            \
	X(readlink, ENOENT)          \
	X(realpath, ELOOP)           \
	X(setrlimit, EPERM)          \
	X(getrlimit, EINVAL)         \
	X(dup3, EMFILE)              \
	X(prctl, EINVAL)             \
	X(syscall, ENOSYS)           \
	X(close, EIO)

#endif
