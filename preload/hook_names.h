/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every function that we stand before: X(result, member, symbol, arguments). The table of what
 * comes next in line (real.h) and its look-up are made from this one list.
 */
#ifndef MT_PRELOAD_HOOK_NAMES_H
#define MT_PRELOAD_HOOK_NAMES_H

#define MT_REAL_HEAP(X)                                                             \
	X(void *, malloc, "malloc", (size_t))                                       \
	X(void, free, "free", (void *))                                             \
	X(void *, calloc, "calloc", (size_t, size_t))                               \
	X(void *, realloc, "realloc", (void *, size_t))                             \
	X(void *, reallocarray, "reallocarray", (void *, size_t, size_t))           \
	X(int, posix_memalign, "posix_memalign", (void **, size_t, size_t))         \
	X(void *, aligned_alloc, "aligned_alloc", (size_t, size_t))                 \
	X(void *, memalign, "memalign", (size_t, size_t))                           \
	X(void *, valloc, "valloc", (size_t))                                       \
	X(void *, pvalloc, "pvalloc", (size_t))                                     \
	X(void, free_sized, "free_sized", (void *, size_t))                         \
	X(void, free_aligned_sized, "free_aligned_sized", (void *, size_t, size_t)) \
	X(void, cfree, "cfree", (void *))

/* The 8 forms of new and the 12 of delete, by their Itanium ABI names. size_t is unsigned long. */
#define MT_REAL_NEW(X)                                                              \
	X(void *, new_one, "_Znwm", (size_t))                                       \
	X(void *, new_array, "_Znam", (size_t))                                     \
	X(void *, new_one_nothrow, "_ZnwmRKSt9nothrow_t", (size_t, const void *))   \
	X(void *, new_array_nothrow, "_ZnamRKSt9nothrow_t", (size_t, const void *)) \
	X(void *, new_one_aligned, "_ZnwmSt11align_val_t", (size_t, size_t))        \
	X(void *, new_array_aligned, "_ZnamSt11align_val_t", (size_t, size_t))      \
	X(void *, new_one_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t",    \
	  (size_t, size_t, const void *))                                           \
	X(void *, new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t",  \
	  (size_t, size_t, const void *))

#define MT_REAL_DELETE(X)                                                                     \
	X(void, delete_one, "_ZdlPv", (void *))                                               \
	X(void, delete_array, "_ZdaPv", (void *))                                             \
	X(void, delete_one_nothrow, "_ZdlPvRKSt9nothrow_t", (void *, const void *))           \
	X(void, delete_array_nothrow, "_ZdaPvRKSt9nothrow_t", (void *, const void *))         \
	X(void, delete_one_sized, "_ZdlPvm", (void *, size_t))                                \
	X(void, delete_array_sized, "_ZdaPvm", (void *, size_t))                              \
	X(void, delete_one_aligned, "_ZdlPvSt11align_val_t", (void *, size_t))                \
	X(void, delete_array_aligned, "_ZdaPvSt11align_val_t", (void *, size_t))              \
	X(void, delete_one_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t",            \
	  (void *, size_t, const void *))                                                     \
	X(void, delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t",          \
	  (void *, size_t, const void *))                                                     \
	X(void, delete_one_sized_aligned, "_ZdlPvmSt11align_val_t", (void *, size_t, size_t)) \
	X(void, delete_array_sized_aligned, "_ZdaPvmSt11align_val_t", (void *, size_t, size_t))

#define MT_REAL_MAP(X)                                                      \
	X(void *, mmap, "mmap", (void *, size_t, int, int, int, off_t))     \
	X(void *, mmap64, "mmap64", (void *, size_t, int, int, int, off_t)) \
	X(int, munmap, "munmap", (void *, size_t))                          \
	X(void *, mremap, "mremap", (void *, size_t, size_t, int, void *))

#define MT_REAL_PROCESS(X)                                                                   \
	X(pid_t, fork, "fork", (void))                                                       \
	X(pid_t, _Fork, "_Fork", (void))                                                     \
	X(int, mlockall, "mlockall", (int))                                                  \
	X(int, prctl, "prctl", (int, long, long, long, long))                                \
	X(long, syscall, "syscall", (long, long, long, long, long, long, long))              \
	X(int, execve, "execve", (const char *, char *const *, char *const *))               \
	X(int, execvpe, "execvpe", (const char *, char *const *, char *const *))             \
	X(int, fexecve, "fexecve", (int, char *const *, char *const *))                      \
	X(int, execveat, "execveat", (int, const char *, char *const *, char *const *, int)) \
	X(int, posix_spawn, "posix_spawn",                                                   \
	  (pid_t *, const char *, const void *, const void *, char *const *, char *const *)) \
	X(int, posix_spawnp, "posix_spawnp",                                                 \
	  (pid_t *, const char *, const void *, const void *, char *const *, char *const *))

#define MT_REAL_JUMP(X)                                  \
	X(void, longjmp, "longjmp", (void *, int))       \
	X(void, _longjmp, "_longjmp", (void *, int))     \
	X(void, siglongjmp, "siglongjmp", (void *, int)) \
	X(void, __longjmp_chk, "__longjmp_chk", (void *, int))

/* Found late where they are in a library of their own (glibc before 2.34) that came late. */
#define MT_REAL_LOAD(X)                                  \
	X(void *, dlopen, "dlopen", (const char *, int)) \
	X(void *, dlmopen, "dlmopen", (long, const char *, int))

#define MT_REAL_ALL(X)     \
	MT_REAL_HEAP(X)    \
	MT_REAL_NEW(X)     \
	MT_REAL_DELETE(X)  \
	MT_REAL_MAP(X)     \
	MT_REAL_PROCESS(X) \
	MT_REAL_JUMP(X)    \
	MT_REAL_LOAD(X)

#endif
