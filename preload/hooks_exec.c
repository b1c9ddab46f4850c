/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * exec and posix_spawn: an environment that lacks us gets us back, and one that would break its
 * image loses us.
 *
 * A vfork child comes here too: nothing is written but the stack frames of these functions (and
 * what is known of filters that it has set), and nothing is allocated. What the new image cannot
 * use is left as the program gave it.
 */
#include "preload/hooks.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "common/raw_syscall.h"
#include "preload/exec_target.h"
#include "preload/follow.h"
#include "preload/image.h"
#include "preload/real.h"
#include "preload/sandbox.h"

enum how { EXECVE, EXECVPE, FEXECVE, EXECVEAT, SPAWN, SPAWNP };

struct call {
	enum how how;
	const char *path;
	char *const *arguments;
	int fd;	   /* FEXECVE, EXECVEAT */
	int flags; /* EXECVEAT */
	pid_t *ret_pid;
	const void *actions;
	const void *attributes;
};

static enum mt_target target_of(const struct call *call)
{
	/* A filter that the program set may kill the new image when it says hello. */
	if (mt_load_relaxed(&mt_image.producer.no_syscalls) != 0)
		return MT_TARGET_UNFIT;
	switch (call->how) {
	case EXECVPE:
	case SPAWNP:
		return mt_exec_target_search(call->path);
	case FEXECVE:
		return mt_exec_target_fd(call->fd);
	case EXECVEAT:
		if ((call->flags & AT_EMPTY_PATH) != 0 && call->path[0] == '\0')
			return mt_exec_target_fd(call->fd);
		return mt_exec_target_at(call->fd, call->path);
	default:
		return mt_exec_target_at(AT_FDCWD, call->path);
	}
}

/* glibc has it since 2.34; a program that finds ours before that is served as well. */
static int real_execveat(const struct call *call, char *const *environment)
{
	long error;

	if (mt_real.execveat != NULL)
		return mt_real.execveat(call->fd, call->path, call->arguments, environment,
					call->flags);
	error = mt_syscall5(SYS_execveat, call->fd, (long)call->path, (long)call->arguments,
			    (long)environment, call->flags);
	errno = (int)-error;
	return -1;
}

static int pass_on(const struct call *call, char *const *environment)
{
	switch (call->how) {
	case EXECVE:
		return mt_real.execve(call->path, call->arguments, environment);
	case EXECVPE:
		return mt_real.execvpe(call->path, call->arguments, environment);
	case FEXECVE:
		return mt_real.fexecve(call->fd, call->arguments, environment);
	case EXECVEAT:
		return real_execveat(call, environment);
	case SPAWN:
		return mt_real.posix_spawn(call->ret_pid, call->path, call->actions,
					   call->attributes, call->arguments, environment);
	default:
		return mt_real.posix_spawnp(call->ret_pid, call->path, call->actions,
					    call->attributes, call->arguments, environment);
	}
}

static __attribute__((noinline)) int pass_changed(const struct call *call,
						  const struct mt_follow_plan *plan)
{
	char **pointers = alloca(plan->pointers * sizeof(*pointers));
	char *text = alloca(plan->text_bytes);

	mt_follow_build(plan, pointers, text);
	return pass_on(call, pointers);
}

static int pass_planned(const struct call *call, char *const *environment,
			const struct mt_follow_plan *plan)
{
	return plan->pointers != 0 ? pass_changed(call, plan) : pass_on(call, environment);
}

static bool is_too_big(const struct call *call, int result)
{
	if (call->how == SPAWN || call->how == SPAWNP)
		return result == E2BIG;
	return result < 0 && errno == E2BIG;
}

static int start(const struct call *call, char *const *environment)
{
	struct mt_follow_plan plan = { .pointers = 0 };
	enum mt_target target;
	uint32_t filters;
	int result;

	/* A vfork child may only exec: who spawns is its parent, and the child is over. */
	if (call->how == SPAWN || call->how == SPAWNP)
		(void)mt_sandbox_end_child();
	if (mt_follow.on && (call->path != NULL || call->how == FEXECVE)) {
		target = target_of(call);
		if (target == MT_TARGET_ORDINARY && !mt_follow_is_reachable())
			target = MT_TARGET_UNFIT;
		plan = mt_follow_plan(environment, target);
	}
	/* The parent goes on as soon as this has succeeded. */
	filters = mt_sandbox_end_child();
	result = pass_planned(call, environment, &plan);
	/* What just fits without us has to start: then without us. */
	if (mt_follow.on && is_too_big(call, result)) {
		plan = mt_follow_plan(environment, MT_TARGET_UNFIT);
		plan.least = true;
		result = pass_planned(call, environment, &plan);
	}
	mt_sandbox_resume_child(filters);
	return result;
}

MT_HOOK int MT_NAME(execve)(const char *path, char *const arguments[], char *const environment[])
{
	struct call call = { .how = EXECVE, .path = path, .arguments = arguments };

	(void)mt_real_resolve(); /* false only inside the look-up, which starts nothing */
	return start(&call, environment);
}

MT_HOOK int MT_NAME(execv)(const char *path, char *const arguments[])
{
	return MT_NAME(execve)(path, arguments, environ);
}

MT_HOOK int MT_NAME(execvpe)(const char *name, char *const arguments[], char *const environment[])
{
	struct call call = { .how = EXECVPE, .path = name, .arguments = arguments };

	(void)mt_real_resolve(); /* as above */
	return start(&call, environment);
}

MT_HOOK int MT_NAME(execvp)(const char *name, char *const arguments[])
{
	return MT_NAME(execvpe)(name, arguments, environ);
}

MT_HOOK int MT_NAME(fexecve)(int fd, char *const arguments[], char *const environment[])
{
	struct call call = { .how = FEXECVE, .fd = fd, .arguments = arguments };

	(void)mt_real_resolve(); /* as above */
	return start(&call, environment);
}

MT_HOOK int MT_NAME(execveat)(int fd, const char *path, char *const arguments[],
			      char *const environment[], int flags)
{
	struct call call = {
		.how = EXECVEAT, .fd = fd, .path = path, .arguments = arguments, .flags = flags
	};

	(void)mt_real_resolve(); /* as above */
	return start(&call, environment);
}

/* Counts a list of arguments, its NULL not included. */
static size_t count_list(const char *first, va_list list)
{
	size_t count = 0;

	for (; first != NULL; first = va_arg(list, const char *))
		count++;
	return count;
}

/* Copies a list of arguments with its NULL, and leaves `list` behind it. */
#define COPY_LIST(first, list, arguments)                          \
	do {                                                       \
		size_t at_ = 0;                                    \
                                                                   \
		(arguments)[at_] = (char *)(uintptr_t)(first);     \
		while ((arguments)[at_] != NULL)                   \
			(arguments)[++at_] = va_arg(list, char *); \
	} while (0)

#define EXECL(name, body)                                                   \
	MT_HOOK int MT_NAME(name)(const char *path, const char *first, ...) \
	{                                                                   \
		char **arguments;                                           \
		va_list list;                                               \
		size_t count;                                               \
                                                                            \
		va_start(list, first);                                      \
		count = count_list(first, list);                            \
		va_end(list);                                               \
		arguments = alloca((count + 1) * sizeof(*arguments));       \
		va_start(list, first);                                      \
		COPY_LIST(first, list, arguments);                          \
		body                                                        \
	}

EXECL(execl, {
	va_end(list);
	return MT_NAME(execve)(path, arguments, environ);
})
EXECL(execlp, {
	va_end(list);
	return MT_NAME(execvpe)(path, arguments, environ);
})
EXECL(execle, {
	char *const *environment = va_arg(list, char *const *);

	va_end(list);
	return MT_NAME(execve)(path, arguments, environment);
})

MT_HOOK int mt_hook_posix_spawn(pid_t *ret_pid, const char *path, const void *actions,
				const void *attributes, char *const arguments[],
				char *const environment[]) MT_LABEL("posix_spawn");

MT_HOOK int mt_hook_posix_spawn(pid_t *ret_pid, const char *path, const void *actions,
				const void *attributes, char *const arguments[],
				char *const environment[])
{
	struct call call = { .how = SPAWN,
			     .path = path,
			     .arguments = arguments,
			     .ret_pid = ret_pid,
			     .actions = actions,
			     .attributes = attributes };

	(void)mt_real_resolve(); /* as above */
	return start(&call, environment);
}

MT_HOOK int mt_hook_posix_spawnp(pid_t *ret_pid, const char *name, const void *actions,
				 const void *attributes, char *const arguments[],
				 char *const environment[]) MT_LABEL("posix_spawnp");

MT_HOOK int mt_hook_posix_spawnp(pid_t *ret_pid, const char *name, const void *actions,
				 const void *attributes, char *const arguments[],
				 char *const environment[])
{
	struct call call = { .how = SPAWNP,
			     .path = name,
			     .arguments = arguments,
			     .ret_pid = ret_pid,
			     .actions = actions,
			     .attributes = attributes };

	(void)mt_real_resolve(); /* as above */
	return start(&call, environment);
}
