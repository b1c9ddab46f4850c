/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a hook is declared. In the library it is exported under the name of what it stands before; a
 * test program that links our sources gets it as mt_hook_NAME instead (MT_HARNESS), so that it does
 * not hook itself.
 */
#ifndef MT_PRELOAD_HOOKS_H
#define MT_PRELOAD_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MT_HOOK __attribute__((visibility("default")))
#ifdef MT_HARNESS
#define MT_NAME(name) mt_hook_##name
#define MT_LABEL(symbol)
#else
#define MT_NAME(name)	 name
#define MT_LABEL(symbol) __asm__(symbol) /* for names that C has no way or another type for */
#endif

MT_HOOK void *MT_NAME(malloc)(size_t size);
MT_HOOK void MT_NAME(free)(void *block);
MT_HOOK void MT_NAME(cfree)(void *block);
MT_HOOK void MT_NAME(free_sized)(void *block, size_t size);
MT_HOOK void MT_NAME(free_aligned_sized)(void *block, size_t align, size_t size);
MT_HOOK void *MT_NAME(calloc)(size_t count, size_t each);
MT_HOOK void *MT_NAME(realloc)(void *old, size_t size);
MT_HOOK void *MT_NAME(reallocarray)(void *old, size_t count, size_t each);
MT_HOOK int MT_NAME(posix_memalign)(void **ret_block, size_t align, size_t size);
MT_HOOK void *MT_NAME(aligned_alloc)(size_t align, size_t size);
MT_HOOK void *MT_NAME(memalign)(size_t align, size_t size);
MT_HOOK void *MT_NAME(valloc)(size_t size);
MT_HOOK void *MT_NAME(pvalloc)(size_t size);
MT_HOOK void *MT_NAME(mmap)(void *start, size_t len, int protection, int flags, int fd,
			    off_t offset);
MT_HOOK void *MT_NAME(mmap64)(void *start, size_t len, int protection, int flags, int fd,
			      off_t offset);
MT_HOOK int MT_NAME(munmap)(void *start, size_t len);
MT_HOOK int MT_NAME(mlockall)(int flags);
MT_HOOK void *MT_NAME(dlopen)(const char *file, int flags);
MT_HOOK void *MT_NAME(dlmopen)(long lmid, const char *file, int flags);
MT_HOOK pid_t MT_NAME(fork)(void);
MT_HOOK pid_t MT_NAME(_Fork)(void);
MT_HOOK int MT_NAME(execve)(const char *path, char *const arguments[], char *const environment[]);
MT_HOOK int MT_NAME(execv)(const char *path, char *const arguments[]);
MT_HOOK int MT_NAME(execvpe)(const char *name, char *const arguments[], char *const environment[]);
MT_HOOK int MT_NAME(execvp)(const char *name, char *const arguments[]);
MT_HOOK int MT_NAME(fexecve)(int fd, char *const arguments[], char *const environment[]);
MT_HOOK int MT_NAME(execveat)(int fd, const char *path, char *const arguments[],
			      char *const environment[], int flags);
MT_HOOK int MT_NAME(execl)(const char *path, const char *first, ...);
MT_HOOK int MT_NAME(execlp)(const char *path, const char *first, ...);
MT_HOOK int MT_NAME(execle)(const char *path, const char *first, ...);

#endif
