# SPDX-License-Identifier: MIT OR Apache-2.0
# What a hooked call costs. The library is preloaded, the module of steps loaded, by the program.
bench_all += bench/hook
bench_hook_SOURCES = \
	bench/hook.c bench/hook_child.c bench/hook_child.h bench/hook_steps.h \
	tests/e2e/shim_session.c tests/e2e/shim_session.h $(bench_harness)
bench_hook_CFLAGS = $(AM_CFLAGS) -O2 -pthread -fno-builtin
bench_hook_LDADD = libmtcommon.la -ldl
EXTRA_bench_hook_DEPENDENCIES = preload/libmemtrack-preload.la bench/libsteps.la

EXTRA_LTLIBRARIES = bench/libsteps.la
CLEANFILES += bench/libsteps.la
bench_libsteps_la_SOURCES = bench/hook_steps.c bench/hook_steps.h
bench_libsteps_la_CFLAGS = $(MT_SHIM_CFLAGS)
bench_libsteps_la_LDFLAGS = -module -avoid-version -shared -rpath /none
