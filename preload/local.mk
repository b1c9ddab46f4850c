# SPDX-License-Identifier: MIT OR Apache-2.0
# The preloaded library: libc alone, hooks alone, no sanitizer, a TLS that needs no allocation.
pkglib_LTLIBRARIES += preload/libmemtrack-preload.la
EXTRA_DIST += preload/preload.map

MT_SHIM_SOURCES = \
	common/atomic.h \
	common/chunk.h \
	common/chunk_producer.c \
	common/chunk_producer.h \
	common/control.h \
	common/raw_syscall.h \
	common/sanitizer.h \
	preload/attach.c \
	preload/attach.h \
	preload/cover.c \
	preload/cover.h \
	preload/early.c \
	preload/early.h \
	preload/elf_lookup.c \
	preload/elf_lookup.h \
	preload/emit.c \
	preload/emit.h \
	preload/exec_target.c \
	preload/exec_target.h \
	preload/follow.c \
	preload/follow.h \
	preload/guard.h \
	preload/hook_names.h \
	preload/hooks.h \
	preload/hooks_exec.c \
	preload/hooks_fork.c \
	preload/hooks_heap.c \
	preload/hooks_jump.c \
	preload/hooks_load.c \
	preload/hooks_lock.c \
	preload/hooks_map.c \
	preload/hooks_new.c \
	preload/hooks_sandbox.c \
	preload/image.h \
	preload/real.c \
	preload/real.h \
	preload/sandbox.h \
	preload/pulse.c \
	preload/pulse.h \
	preload/session.c \
	preload/session.h \
	preload/settings.c \
	preload/settings.h \
	preload/stamp.h \
	preload/start.c \
	preload/start.h \
	preload/thread.c \
	preload/thread.h

MT_SHIM_CFLAGS = -std=gnu11 $(MT_WARN_CFLAGS) $(MT_SHIM_DEBUG_CFLAGS) -O2 -pthread -fPIC \
	-fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc \
	-fno-builtin-free -fasynchronous-unwind-tables -fno-stack-protector -U_FORTIFY_SOURCE

preload_libmemtrack_preload_la_SOURCES = $(MT_SHIM_SOURCES)
preload_libmemtrack_preload_la_CFLAGS = $(MT_SHIM_CFLAGS) \
	-DMT_SIDECAR_PATH='"$(pkglibexecdir)/memtrack-sidecar"'
preload_libmemtrack_preload_la_LDFLAGS = -module -avoid-version -shared \
	-Wl,--version-script=$(top_srcdir)/preload/preload.map -Wl,-z,now -Wl,-z,defs \
	-Wl,--as-needed
preload_libmemtrack_preload_la_DEPENDENCIES = $(top_srcdir)/preload/preload.map
