# SPDX-License-Identifier: MIT OR Apache-2.0
# What a hooked call costs. The library and the empty interposer are preloaded by the program.
bench_all += bench/hook
bench_hook_SOURCES = bench/hook.c tests/e2e/shim_session.c tests/e2e/shim_session.h $(bench_harness)
bench_hook_CFLAGS = $(AM_CFLAGS) -O2 -fno-builtin
bench_hook_LDADD = libmtcommon.la
EXTRA_bench_hook_DEPENDENCIES = preload/libmemtrack-preload.la bench/libempty.la

EXTRA_LTLIBRARIES = bench/libempty.la
CLEANFILES += bench/libempty.la
bench_libempty_la_SOURCES = bench/empty.c
bench_libempty_la_CFLAGS = -std=gnu11 $(MT_WARN_CFLAGS) -O2 -fno-builtin
bench_libempty_la_LDFLAGS = -module -avoid-version -shared -rpath /none
